package pty

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a pseudo-terminal of the given size in characters. The caller closes both ends.
func Open(columns, rows int) (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = control.Close()
		}
	}()
	raw, err := control.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var number int
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed != nil {
			return
		}
		if number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed != nil {
			return
		}
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pty: %w", err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	return control, terminal, err
}
