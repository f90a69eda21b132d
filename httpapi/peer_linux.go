package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"syscall"
)

// peerOf returns the process at the other end of a unix socket, or 0 if it is unknown (unix(7), SO_PEERCRED).
func peerOf(c net.Conn) (pid int) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

// isStopped reports whether a process is stopped by a signal or a debugger (proc(5), the third field of stat).
func isStopped(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := b[bytes.LastIndexByte(b, ')')+1:] // the name before it may contain anything
	fields := bytes.Fields(rest)
	return len(fields) > 0 && (fields[0][0] == 'T' || fields[0][0] == 't')
}
