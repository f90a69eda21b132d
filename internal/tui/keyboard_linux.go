package tui

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// reopen opens the terminal of an open file again. See proc_pid_fd(5).
func reopen(f *os.File) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
}

// stopProcess stops the foreground process group, as Ctrl-Z does, and returns when it continues.
func stopProcess() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return fmt.Errorf("the process cannot be stopped: %w", err)
	}
	<-continued
	return nil
}

// waiting returns the number of bytes of the complete lines that were typed and not read yet. See TIOCINQ(2const).
func waiting(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return 0 // the lines become one message
	}
	return n
}

// mapNewlines sets the mode in which a line feed in the output also moves to the first column. See termios(3).
func mapNewlines(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag |= unix.OPOST | unix.ONLCR
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
