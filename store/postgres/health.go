package postgres

import (
	"context"
	"time"

	"github.com/tenonhq/tenon/store"
)

const (
	// probeEvery is the time for which the result of a probe is valid.
	probeEvery = time.Second
	// probePatience bounds one probe.
	probePatience = 5 * time.Second
)

// Probe implements [store.Health]. It writes the row of this replica. Like any other write, it returns when the server
// has written to its disk.
func (s *Store) Probe(ctx context.Context) error {
	s.mu.Lock()
	fresh, err := time.Now().Before(s.probed), s.health
	s.mu.Unlock()
	if fresh {
		return err
	}
	limited, stop := context.WithTimeout(ctx, probePatience)
	defer stop()
	_, err = s.pool.Exec(limited, s.sql("UPDATE @replicas SET name = name WHERE id = $1"), s.replica)
	if ctx.Err() != nil {
		return s.cancelled(ctx.Err()) // not an error of the store
	}
	if err != nil {
		err = s.storeError("probe", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed, s.health = time.Now().Add(probeEvery), err
	return err
}

// Usage implements [store.Health]. The free space is unknown, because it is the server's.
func (s *Store) Usage() store.Usage { return store.Usage{Free: -1, FailedWrites: s.failed.Load()} }
