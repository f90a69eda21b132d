package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
)

// errLocked says that somebody has a lock.
var errLocked = errors.New("locked")

// leaseTries and leasePause let a short look by Held pass.
const (
	leaseTries = 3
	leasePause = time.Millisecond
)

// leaseFile names the file of a run's lease. Run ids may hold slashes and be
// long.
func (s *Store) leaseFile(run string) string {
	sum := sha256.Sum256([]byte(run))
	return filepath.Join(s.locks, hex.EncodeToString(sum[:16]))
}

// Acquire implements [store.Leases].
func (s *Store) Acquire(run string) (release func(), ok bool, err error) {
	path := s.leaseFile(run)
	for try := 0; try < leaseTries; {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, false, tenon.Errorf(tenon.CodeStore, "store %s: no lease of run %s: %w", s.path, run, err)
		}
		err = lockFile(f, true)
		if err == nil && sameFile(f, path) {
			return func() { s.release(f, path) }, true, nil
		}
		_ = f.Close() // nothing was written
		switch {
		case err == nil: // its last owner has just removed it
		case errors.Is(err, errLocked):
			if try++; try < leaseTries {
				time.Sleep(leasePause)
			}
		default:
			return nil, false, tenon.Errorf(tenon.CodeStore, "store %s: no lease of run %s: %w; leases need a local disk", s.path, run, err)
		}
	}
	return nil, false, nil
}

// release removes the file while it is locked, so that nobody locks a file that
// is about to go without noticing.
func (s *Store) release(f *os.File, path string) {
	if err := removeLocked(f, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a lease's file could not be removed", "path", path, "error", err)
	}
}

// Held implements [store.Leases].
func (s *Store) Held(run string) (bool, error) {
	f, err := os.OpenFile(s.leaseFile(run), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, tenon.Errorf(tenon.CodeStore, "store %s: no look at the lease of run %s: %w", s.path, run, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	err = lockFile(f, false)
	if err != nil && !errors.Is(err, errLocked) {
		return false, tenon.Errorf(tenon.CodeStore, "store %s: no look at the lease of run %s: %w", s.path, run, err)
	}
	return err != nil, nil
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
