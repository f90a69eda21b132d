package sqlite

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// emptyStore is an empty store with all migrations. A new store begins as a copy of it, because creating the tables
// one after another takes a tenth of the time of a short run. A test compares it with the migrations.
//
//go:embed empty.db
var emptyStore []byte

// makeFile creates the file of a store, as a whole or not at all, even if several processes do so at once. full says
// that the file may begin as a copy of emptyStore. Otherwise, or if the file system does not support that, it is an
// empty file that the migrations fill. The file's mode does not depend on the umask; SQLite uses the same mode for
// -wal and -shm.
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
		// The file system has no links, or the disk is full: the next call reports it.
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

// linkEmpty writes an empty store under a temporary name and then links it to its own name. SQLite syncs the folder
// before the first commit ends, so the name need not be synced before.
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
	_ = os.Remove(f.Name()) // if it stays, it does no harm
	return err
}
