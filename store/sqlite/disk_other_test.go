//go:build !linux

package sqlite

import "errors"

// These tests need features of Linux to limit a disk.
var errLinux = errors.New("only on Linux")

func fillChild(string) error   { return errLinux }
func refuseChild(string) error { return errLinux }
