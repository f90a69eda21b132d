package local

func childMain() {}
