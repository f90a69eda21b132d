//go:build unix && !linux && !solaris && !aix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops the input of a terminal that was typed and not read yet (tcflush with TCIFLUSH).
func flushInput(f *os.File) {
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH) // fails only if it is no terminal
}
