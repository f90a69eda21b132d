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

// leases are locks on files, one for each run that is worked on. They belong to
// the open file, so two in one process exclude each other.
type leases struct{ dir string }

func openLeases(dir string) (*leases, error) { return &leases{dir}, os.MkdirAll(dir, 0o700) }

func (l *leases) close() error { return nil }

// errLocked says that somebody has a lock.
var errLocked = errors.New("locked")

// leaseTries and leasePause let a short look by held pass.
const (
	leaseTries = 3
	leasePause = time.Millisecond
)

// file names the file of a run's lease. Run ids may hold slashes and be long.
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
			// The file goes while it is locked, so that nobody locks one that is
			// about to go without noticing.
			return func() { _ = removeLocked(f, path) }, true, nil // a file that stays is harmless
		}
		_ = f.Close() // nothing was written
		switch {
		case err == nil: // its last owner has just removed it
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

// holder returns 0: the system does not say which process has a lock.
func (l *leases) holder(string) (pid int) { return 0 }

// busy reports whether anybody has any lease but the one of a migration.
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

// sameFile reports whether the open file is still the one of that name.
func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
