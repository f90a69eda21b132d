//go:build !unix && !windows

package filelock

import "os"

// try locks nothing: these systems have no locks that the standard library offers.
func try(*os.File) (bool, error) { return true, nil }

func open(dir string) (*os.File, error) { return os.Open(dir) }
