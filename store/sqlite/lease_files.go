//go:build !linux

package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// leases are locks on files, one for each run on which a process works. A lock belongs to the open file, so two
// stores in one process exclude each other.
type leases struct{ dir string }

func openLeases(dir string) (*leases, error) { return &leases{dir}, os.MkdirAll(dir, 0o700) }

func (l *leases) close() error { return nil }

// errLocked says that another process, or another store, holds a lock.
var errLocked = errors.New("locked")

// leaseTries and leasePause wait for the end of a short check by held.
const (
	leaseTries = 3
	leasePause = time.Millisecond
)

// file returns the path of a run's lease. It is a hash, because run ids may contain slashes and be long.
func (l *leases) file(run string) string {
	sum := sha256.Sum256([]byte(run))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:16]))
}

func (l *leases) acquire(run string) (release func(), ok bool, err error) {
	path := l.file(run)
	for try := 0; try < leaseTries; {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, false, err
		}
		err = lockFile(f, true)
		if err == nil && sameFile(f, path) {
			// Remove the file while it is locked. Otherwise another process could lock a file that is about to be
			// removed.
			return func() { _ = removeLocked(f, path) }, true, nil // a file that stays is harmless
		}
		_ = f.Close() // nothing was written
		switch {
		case err == nil: // its previous owner has just removed it
		case errors.Is(err, errLocked):
			if try++; try < leaseTries {
				time.Sleep(leasePause)
			}
		default:
			return nil, false, err
		}
	}
	return nil, false, nil
}

func (l *leases) held(run string) (bool, error) { return heldFile(l.file(run)) }

func heldFile(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	err = lockFile(f, false)
	if err != nil && !errors.Is(err, errLocked) {
		return false, err
	}
	return err != nil, nil
}

// holder returns 0, because the system does not reveal which process holds a lock.
func (l *leases) holder(string) (pid int) { return 0 }

// busy reports whether any lease is held, other than the lease of a migration.
func (l *leases) busy() (bool, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		path := filepath.Join(l.dir, e.Name())
		if path == l.file(migrationName) {
			continue
		}
		if held, err := heldFile(path); err != nil || held {
			return held, err
		}
	}
	return false, nil
}

// sameFile reports whether the path still leads to the open file.
func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
