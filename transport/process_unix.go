//go:build unix

package transport

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// group makes the process the leader of a new process group, so that its children can be ended with it (npx
// starts node).
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	deathSignal(cmd.SysProcAttr)
}

// end signals the whole process group. It ignores errors, which mean that the group is empty.
func end(pid int, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-pid, sig)
}

// tryWriter returns a function that writes as much as fits without blocking, or nil if w does not support
// this. An error is reported by the next blocking write.
func tryWriter(w io.Writer) func([]byte) int {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	nonblocking := false
	if conn.Control(func(fd uintptr) { nonblocking = isNonblock(fd) }) != nil {
		return nil
	}
	if !nonblocking {
		// Here tenon is a server and w is its stdout. The write may block: only a client that does not read makes it
		// wait.
		return func(p []byte) int {
			n, _ := f.Write(p) // the error recurs when the rest is written
			return n
		}
	}
	var b []byte
	var n int
	write := func(fd uintptr) bool {
		var err error
		if n, err = syscall.Write(int(fd), b); err != nil {
			n = 0
		}
		return true
	}
	return func(p []byte) int {
		b = p
		err := conn.Write(write)
		b = nil
		if err != nil {
			return 0
		}
		return n
	}
}
