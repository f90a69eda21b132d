package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// awaitEnd waits until a child process has ended, without blocking a thread and without reaping it. It
// returns at once if the kernel does not support this (before Linux 5.3).
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	if unix.SetNonblock(fd, true) != nil { // required for polling
		_ = unix.Close(fd)
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = f.Close() }()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	// If the descriptor cannot be polled, this returns at once too.
	_ = conn.Read(func(uintptr) bool { return hasEnded(pid) })
}

// hasEnded reports whether the process has ended. It does not wait and does not reap the process.
func hasEnded(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err != nil || info.Signo != 0
		}
	}
}
