package sqlite

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Acquire implements [store.Leases].
func (s *Store) Acquire(run string) (release func(), ok bool, err error) {
	if s.leases == nil {
		return nil, false, tenon.Errorf(tenon.CodeStore,
			"store %s: it cannot be written, so that nothing works on run %s; choose another place with --home", s.path,
			run)
	}
	release, ok, err = s.leases.acquire(run)
	if err != nil {
		return nil, false, tenon.Errorf(tenon.CodeStore, "store %s: no lease of run %s: %w; leases need a local disk",
			s.path, run, err)
	}
	return release, ok, nil
}

// Held implements [store.Leases].
func (s *Store) Held(run string) (bool, error) {
	if s.leases == nil {
		return false, nil // there are no leases here, so it cannot be known whether another process works on the run
	}
	held, err := s.leases.held(run)
	if err != nil {
		return false, tenon.Errorf(tenon.CodeStore, "store %s: no look at the lease of run %s: %w", s.path, run, err)
	}
	return held, nil
}

// Holder implements [store.LeaseHolders]. Only Linux reveals which process holds a lock.
func (s *Store) Holder(run string) (pid int) {
	if s.leases == nil {
		return 0
	}
	return s.leases.holder(run)
}

var _ store.LeaseHolders = (*Store)(nil)
