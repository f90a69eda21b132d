//go:build unix && !linux

package transport

import "syscall"

func deathSignal(*syscall.SysProcAttr) {}

// awaitEnd returns at once: waiting for a process holds a thread here.
func awaitEnd(int) {}
