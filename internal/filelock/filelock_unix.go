//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

func try(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

func open(dir string) (*os.File, error) { return os.Open(dir) }
