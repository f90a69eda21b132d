package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon/store"
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
	epoch, err := s.calls.leases.get(s.ctx, s, run)
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

// acquireAll takes leases and returns their epochs. A lease that another replica has gets epoch 0. If a statement gets
// no answer, acquireAll repeats it. The leases may be stored already then. In this case, they get new epochs.
//
// The statement need not be on disk before it returns: what is written under the lease is on disk only together with
// everything before it. If the server crashes and forgets the lease, and then gives its epoch to another replica, the
// owner differs; see [tx.hold]. Several replicas lock the rows in the order of the runs.
func (s *Store) acquireAll(ctx context.Context, runs []string) ([]answer[int64], error) {
	sorted := slices.Clone(runs)
	slices.Sort(sorted)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		epochs, err := s.acquireOnce(ctx, slices.Compact(sorted))
		if err == nil {
			answers := make([]answer[int64], len(runs))
			for i, run := range runs {
				answers[i].value = epochs[plainText(run)]
			}
			return answers, nil
		}
		if !passes(err) || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// acquire takes leases. It locks only rows that it may take, and never waits for a row that somebody has locked: such a
// lease is not taken now, and the others are not delayed. A lease that another replica deletes meanwhile is not taken,
// either.
const acquire = `WITH u AS (SELECT u.run FROM unnest($1::text[]) AS u (run)),
	free AS (SELECT l.run FROM @leases l JOIN u ON l.run = u.run WHERE l.owner = $2 OR NOT ` + live + `
		ORDER BY l.run FOR UPDATE OF l SKIP LOCKED),
	taken AS (UPDATE @leases l SET owner = $2, epoch = nextval('@epochs') FROM free WHERE l.run = free.run
		RETURNING l.run, l.epoch),
	new AS (INSERT INTO @leases (run, owner, epoch)
		SELECT u.run, $2, nextval('@epochs') FROM (SELECT u.run FROM u
			WHERE NOT EXISTS (SELECT 1 FROM @leases l WHERE l.run = u.run) ORDER BY u.run) AS u
		ON CONFLICT (run) DO NOTHING RETURNING run, epoch)
	SELECT run, epoch, set_config('synchronous_commit', 'off', true)
	FROM (SELECT run, epoch FROM taken UNION ALL SELECT run, epoch FROM new) AS got`

// acquireOnce returns the epochs of the leases that it took, by the stored form of the run. While an append may be
// under way, it takes none, because this store may still own the lease in the database.
func (s *Store) acquireOnce(ctx context.Context, runs []string) (epochs map[string]int64, err error) {
	if ok, err := s.settled(ctx); !ok {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, s.sql(acquire), encode([]any{runs, s.replica})...)
	if err != nil {
		return nil, err
	}
	epochs = map[string]int64{}
	err = eachRow(rows, func(rows pgx.Rows) error {
		var run, off string
		var epoch int64
		err := rows.Scan(&run, &epoch, &off)
		epochs[run] = epoch
		return err
	})
	return epochs, err
}

// releaseLease deletes a lease. It need not be on disk before it returns: a lease that is there again after a crash of
// the server expires, or its owner deletes it; see strays.
var releaseLease = `DELETE FROM @leases WHERE run = $1 AND ` + isOwn("$2") + ` AND epoch = $3
	RETURNING set_config('synchronous_commit', 'off', true)`

// ownLease is a lease of this store.
type ownLease struct {
	run   string
	epoch int64
}

// release deletes a lease. If the database cannot be reached, the heartbeat deletes it later; see strays.
func (s *Store) release(run string, epoch int64) {
	s.forget(run)
	ctx, stop := context.WithTimeout(s.ctx, s.lease)
	defer stop()
	_, _ = s.calls.releases.get(ctx, s, ownLease{run, epoch}) // strays and Close delete what remains
	s.forgotten(run)
	s.watch.notify()
	s.hintOthers()
}

// releaseAll deletes leases. Like [Store.acquireAll], it locks the rows in the order of the runs.
func (s *Store) releaseAll(ctx context.Context, list []ownLease) ([]answer[struct{}], error) {
	ctx, stop := context.WithTimeout(ctx, s.lease)
	defer stop()
	if ok, err := s.settled(ctx); !ok { // the heartbeat deletes the leases later
		return make([]answer[struct{}], len(list)), err
	}
	runs, epochs := make([]string, len(list)), make([]int64, len(list))
	for i, l := range list {
		runs[i], epochs[i] = l.run, l.epoch
	}
	var err error
	for range 3 {
		_, err = s.pool.Exec(ctx, s.sql(`DELETE FROM @leases WHERE run IN (SELECT l.run FROM @leases l
			JOIN unnest($1::text[], $2::bigint[]) AS u (run, epoch) ON l.run = u.run AND l.epoch = u.epoch
			WHERE l.`+isOwn("$3")+` ORDER BY l.run FOR UPDATE OF l)
			RETURNING set_config('synchronous_commit', 'off', true)`), encode([]any{runs, epochs, s.replica})...)
		if err == nil || !passes(err) {
			break
		}
	}
	return make([]answer[struct{}], len(list)), err
}

// Held implements [store.Leases].
func (s *Store) Held(run string) (bool, error) {
	held, err := s.HeldOf([]string{run})
	return held[run], err
}

// HeldOf implements [store.LeaseSets].
func (s *Store) HeldOf(runs []string) (map[string]bool, error) {
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	held := map[string]bool{}
	err := s.each(ctx, "SELECT l.run FROM @leases l WHERE l.run = ANY ($1::text[]) AND "+live, []any{runs},
		func(rows pgx.Rows) error {
			var run string
			err := scan(rows, &run)
			held[run] = true
			return err
		})
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
		err := s.heartbeat(ctx)
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

// heartbeat renews the leases of this store once, and deletes its leases that it does not know.
func (s *Store) heartbeat(ctx context.Context) error {
	s.mu.Lock()
	address := s.address
	s.mu.Unlock()
	size := 0
	err := s.pool.QueryRow(ctx, s.sql(`INSERT INTO @replicas (id, name, began, expires, address, address_mac, searches)
		VALUES ($1, '', clock_timestamp(), clock_timestamp() + $2 * interval '1 microsecond', $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, address = excluded.address,
			address_mac = excluded.address_mac, searches = excluded.searches
		RETURNING (SELECT count(*) FROM @replicas WHERE searches AND expires > clock_timestamp()),
			set_config('synchronous_commit', 'off', true)`), s.replica, s.lease.Microseconds(), address,
		s.addressMAC(s.replica, address), s.searches.Load() > 0).Scan(&size, nil)
	s.mu.Lock()
	changed := s.address != address // it was announced meanwhile, and this statement may have undone that
	s.mu.Unlock()
	if changed {
		select {
		case s.renew <- struct{}{}:
		default:
		}
	}
	if err != nil {
		return err
	}
	s.size.Store(int64(size))
	return s.strays(ctx)
}

// Enlist implements [store.Fleet]. The next heartbeat tells the other replicas.
func (s *Store) Enlist() (leave func()) {
	s.searches.Add(1)
	return sync.OnceFunc(func() { s.searches.Add(-1) })
}

// Size implements [store.Fleet].
func (s *Store) Size() int { return max(1, int(s.size.Load())) }

// strays deletes the leases of this replica that it does not know. They remain if a release failed, or if the answer to
// an Acquire was lost.
func (s *Store) strays(ctx context.Context) error {
	if ok, err := s.settled(ctx); !ok {
		return err
	}
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
			_, err = s.pool.Exec(ctx, s.sql(releaseLease), plainText(l.run), s.replica, l.epoch)
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

var (
	_ store.LeaseSets = (*Store)(nil)
	_ store.Fleet     = (*Store)(nil)
)
