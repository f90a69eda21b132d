package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// live is the condition that the owner of the lease l is alive.
const live = "EXISTS (SELECT 1 FROM @replicas r WHERE r.id = l.owner AND r.expires > clock_timestamp())"

// Acquire implements [store.Leases]. It takes over a lease whose owner has expired. Such a lease gets a new epoch.
func (s *Store) Acquire(run string) (release func(), ok bool, err error) {
	select {
	case <-s.quit:
		return nil, false, s.closedError()
	default:
	}
	s.mu.Lock()
	_, taken := s.leases[run]
	if !taken {
		s.leases[run] = 0
	}
	s.mu.Unlock()
	if taken {
		return nil, false, nil
	}
	epoch, err := s.acquire(run)
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch == 0 || err != nil {
		delete(s.leases, run)
		if err != nil {
			return nil, false, s.storeError("lease of run "+run, err)
		}
		return nil, false, nil
	}
	s.leases[run] = epoch
	return func() { s.release(run, epoch) }, true, nil
}

// acquire takes a lease and returns its epoch. It returns 0 if another replica has the lease. If a statement gets no
// answer, acquire repeats it. The lease may be stored already then. In this case, it gets a new epoch.
func (s *Store) acquire(run string) (epoch int64, err error) {
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err = s.pool.QueryRow(ctx, s.sql(`INSERT INTO @leases AS l (run, owner, epoch)
			VALUES ($1, $2, nextval('@epochs'))
			ON CONFLICT (run) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch
			WHERE l.owner = excluded.owner OR NOT `+live+` RETURNING epoch`), plainText(run), s.replica).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		if err == nil || !passes(err) || ctx.Err() != nil {
			return epoch, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// release deletes a lease. If the database cannot be reached, the heartbeat deletes it later; see strays.
func (s *Store) release(run string, epoch int64) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), s.lease)
	defer stop()
	for range 3 {
		_, err := s.pool.Exec(ctx, s.sql("DELETE FROM @leases WHERE run = $1 AND owner = $2 AND epoch = $3"),
			plainText(run), s.replica, epoch)
		if err == nil || !passes(err) {
			break
		}
	}
	s.mu.Lock()
	delete(s.leases, run)
	s.mu.Unlock()
	s.watch.notify()
	s.hintOthers()
}

// Held implements [store.Leases].
func (s *Store) Held(run string) (held bool, err error) {
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	err = s.each(ctx, "SELECT EXISTS (SELECT 1 FROM @leases l WHERE l.run = $1 AND "+live+")", []any{run},
		func(rows pgx.Rows) error { return rows.Scan(&held) })
	return held, err
}

// forget is the time for which the rows of a replica are kept after it ended without deleting them. It is longer than
// any COMMIT that the replica may still look up.
const forget = "1 day"

// beat renews all leases of this store at regular intervals, with one statement for all of them.
func (s *Store) beat() {
	every := s.lease / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
		case <-s.renew:
		case <-s.ctx.Done():
			return
		}
		ctx, stop := context.WithTimeout(s.ctx, every)
		_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @replicas (id, name, began, expires)
			VALUES ($1, '', clock_timestamp(), clock_timestamp() + $2 * interval '1 microsecond')
			ON CONFLICT (id) DO UPDATE SET expires = excluded.expires`), s.replica, s.lease.Microseconds())
		if err == nil {
			err = s.strays(ctx)
		}
		if err == nil && n%100 == 0 {
			err = s.sweep(ctx)
		}
		stop()
		if err != nil && s.ctx.Err() == nil {
			s.log.Warn("the leases of this replica are not renewed; if that lasts, others take its runs over", "store",
				s.name, "error", err.Error())
		}
	}
}

// strays deletes the leases of this replica that it does not know. They remain if a release failed, or if the answer to
// an Acquire was lost.
func (s *Store) strays(ctx context.Context) error {
	type lease struct {
		run   string
		epoch int64
	}
	var list []lease
	err := s.each(ctx, "SELECT run, epoch FROM @leases WHERE owner = $1", []any{s.replica}, func(rows pgx.Rows) error {
		var l lease
		err := scan(rows, &l.run, &l.epoch)
		s.mu.Lock()
		_, known := s.leases[l.run]
		s.mu.Unlock()
		if !known {
			list = append(list, l)
		}
		return err
	})
	for _, l := range list {
		if err == nil { // a lease that was acquired since has another epoch
			_, err = s.pool.Exec(ctx, s.sql("DELETE FROM @leases WHERE run = $1 AND owner = $2 AND epoch = $3"),
				plainText(l.run), s.replica, l.epoch)
		}
	}
	return err
}

// sweep deletes the rows of replicas that ended long ago.
func (s *Store) sweep(ctx context.Context) error {
	const dead = " NOT IN (SELECT id FROM @replicas WHERE expires > clock_timestamp() - interval '" + forget + "')"
	for _, q := range []string{"DELETE FROM @leases WHERE owner" + dead, "DELETE FROM @writers WHERE replica" + dead,
		"DELETE FROM @replicas WHERE id" + dead,
		"DELETE FROM @follows WHERE expires < clock_timestamp() - interval '1 minute'",
		"DELETE FROM @live WHERE at < clock_timestamp() - interval '1 minute'"} {
		if _, err := s.pool.Exec(ctx, s.sql(q)); err != nil {
			return err
		}
	}
	return nil
}
