//go:build unix

package transport

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// group makes the process the leader of a group of its own, so that what it
// starts (npx starts node) can be ended with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	deathSignal(cmd.SysProcAttr)
}

// end sends a signal to the whole group. An error means that nobody is left.
func end(pid int, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-pid, sig)
}

// tryWriter returns a function that writes what fits without waiting, nil if w
// cannot do so. An error shows itself at the next waiting write.
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
		// Our own stdout as a server: whoever answers may wait for the client.
		return func(p []byte) int {
			n, _ := f.Write(p) // the error comes again with the rest
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
