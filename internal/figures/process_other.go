//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

// spend cannot tell one process from its children here.
func spend(*exec.Cmd) (spent, error) {
	return spent{}, errors.New("what one process uses is measured on Linux only")
}

// clockOf cannot tell what another process uses here.
func clockOf(int) (time.Duration, error) {
	return 0, errors.New("what another process uses is measured on Linux only")
}
