package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// awaitEnd waits until a child has ended, without holding a thread, and leaves it to
// be waited for. It returns at once where the kernel cannot tell so (before 5.3).
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	if unix.SetNonblock(fd, true) != nil { // or it would not be polled
		_ = unix.Close(fd)
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = f.Close() }()
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	// Where it cannot be polled this ends at once too.
	_ = conn.Read(func(uintptr) bool { return hasEnded(pid) })
}

// hasEnded looks without waiting, and does not free the process id.
func hasEnded(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err != nil || info.Signo != 0
		}
	}
}
