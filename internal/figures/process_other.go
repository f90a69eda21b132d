//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

// spend returns an error, because the usage of one process cannot be measured on this system.
func spend(*exec.Cmd) (spent, error) {
	return spent{}, errors.New("what one process uses is measured on Linux only")
}

// clockOf returns an error, because the usage of another process cannot be measured on this system.
func clockOf(int) (time.Duration, error) {
	return 0, errors.New("what another process uses is measured on Linux only")
}
