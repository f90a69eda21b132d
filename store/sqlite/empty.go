package sqlite

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// emptyStore is a store that has seen all migrations and holds nothing. A new
// store begins as a copy of it: to make the tables one after another takes a
// tenth of what a short run takes in all. A test holds it against the migrations.
//
//go:embed empty.db
var emptyStore []byte

// makeFile makes the file of a store that is not there yet: whole or not at all,
// even where several processes do so at once. Full says that it may begin with
// its tables; else, and where the system cannot do this, it is an empty file that
// the migrations fill. The file's mode does not depend on the umask; SQLite gives
// it to -wal and -shm.
func makeFile(path string, full bool) error {
	if err := checkRemains(path); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if full {
		err := linkEmpty(path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
		// A file system without links, or a disk that is full: the next call says.
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return f.Close()
}

// linkEmpty writes an empty store under another name and then gives it its own.
// SQLite syncs the folder before the first commit ends, so the name need not be
// safe before.
func linkEmpty(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(emptyStore)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	_ = os.Remove(f.Name()) // one that stays is harmless
	return err
}
