//go:build unix

package cli

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unreadInput reports whether a file or a pipe has data to read right now. It does not wait: a pipe that nobody writes
// to may stay open for good.
func unreadInput(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode().IsRegular():
		at, err := f.Seek(0, io.SeekCurrent)
		return err == nil && at < info.Size()
	case info.Mode()&fs.ModeNamedPipe == 0:
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}
