//go:build unix && !linux

package transport

import "syscall"

func deathSignal(*syscall.SysProcAttr) {}
