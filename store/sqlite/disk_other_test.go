//go:build !linux

package sqlite

import "errors"

// The disks of these tests are made of what Linux offers.
var errLinux = errors.New("only on Linux")

func fillChild(string) error   { return errLinux }
func refuseChild(string) error { return errLinux }
