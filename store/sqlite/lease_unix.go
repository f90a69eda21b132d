//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks an open file or returns errLocked. The lock belongs to the
// open file and not to the process, so two in one process exclude each other.
func lockFile(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

func removeLocked(f *os.File, path string) error {
	return errors.Join(os.Remove(path), f.Close())
}
