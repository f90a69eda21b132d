//go:build unix && !linux

package transport

import "syscall"

func deathSignal(*syscall.SysProcAttr) {}

// awaitEnd returns at once, because waiting for a process blocks a thread on this system.
func awaitEnd(int) {}
