// Package wholefile writes files atomically: other processes see either the old or the new content.
//
// Packages that write shared files use it: config, which edits tenon.yaml; host, which stores the disabled
// servers and tools; table; and the command line, whose --out takes any path of the user.
//
// A new file is written next to the old one, synced to disk, and then renamed over it. This only works for
// regular files. A rename over a pipe, or over /dev/null by root, would put a file where other programs
// expect a device. Such targets are therefore written in place. For a link, the file that it refers to is
// written.
//
// The package imports only the standard library.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Target returns the file to write for a path, with links resolved. InPlace reports that it is a pipe or a
// device, which must be written in place.
func Target(path string) (real string, inPlace bool, err error) {
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind // fails for a pipe such as /dev/stdout, which has no path
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

// Write replaces or creates a file with the given mode once the data is on disk. On an error the old file
// remains. Errors are a [Reason].
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
	e := f.Close()
	if err == nil {
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
		e := do()
		if err == nil {
			err = e
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is more useful
	}
	return err
}

// Reason returns the cause of a file system error without the file name. The name is either unknown to the
// user or added by the caller.
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
