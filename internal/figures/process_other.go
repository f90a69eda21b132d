//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

type spent struct {
	cpu  time.Duration
	peak int64
	wall time.Duration
}

func spend(*exec.Cmd) (spent, error) {
	return spent{}, errors.New("what one process uses is measured on Linux only")
}
