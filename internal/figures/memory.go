package main

func measureMemory(*session) error { return nil }
