// Package wholefile writes files that others see as they were or as they are to be, and
// never half written.
//
// It stands below everything that writes a file which somebody else reads: config, which
// edits tenon.yaml; host, which keeps what a person switched off; table and the command
// line, whose --out names any path of the user's.
//
// A new file stands beside the old one until all of it is on the disk, and takes its place
// by a rename. That is right for files alone: a rename over a pipe, or over /dev/null by
// root, would put a file where all other programs expect the device. What is no file is
// therefore written in place, and what a link leads to is written behind the link.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Target is where the bytes for a path go: to the file behind its links. InPlace says that
// a pipe or a device is there, which is written to and must not be replaced by a file.
func Target(path string) (real string, inPlace bool, err error) {
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind // what is no file, as /dev/stdout into a pipe, has no path behind it
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, false, nil
	case err != nil:
		return path, false, err
	case st.IsDir():
		return path, false, &fs.PathError{Op: "write", Path: path, Err: errors.New("it is a folder")}
	}
	return path, !st.Mode().IsRegular(), nil
}

// Write puts a file of that mode in place of the one that is there, if any, when all of it
// is on the disk. Where it fails the old one stays. Errors are a [Reason].
func Write(path string, data []byte, mode fs.FileMode) error {
	path, inPlace, err := Target(path)
	switch {
	case err != nil:
		return Reason(err)
	case inPlace:
		return Reason(writeTo(path, data))
	}
	return Reason(replace(path, data, mode))
}

func writeTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func replace(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tenon-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	for _, do := range []func() error{func() error { return f.Chmod(mode) }, f.Sync, f.Close} {
		if e := do(); err == nil {
			err = e
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// Reason is an error of the file system without the name of the file, which is one that
// nobody knows or that the caller names.
func Reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
