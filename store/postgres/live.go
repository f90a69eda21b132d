package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Live events pass through an unlogged table, whose rows are deleted when they are read. They cause no write-ahead log,
// and they are lost if the server crashes. A notification contains only the id of the replica that has events to read,
// because any role may listen.

// The payloads of notifications about live events.
const (
	followNote = "follow" // a replica has begun to follow a run
	liveNote   = "live:"  // followed by the id of a replica that has live events to read
)

const (
	// readLive is the interval at which the table of live events is read if no connection listens.
	readLive = 40 * time.Millisecond
	// maxLive bounds the rows of live events that are read at a time.
	maxLive = 1000
)

// liveState contains the followers of live events in this process.
type liveState struct {
	row  sync.Mutex // held while the row of a follower is written
	mu   sync.Mutex
	runs map[string]map[*liveFollower]struct{}
	kick chan struct{} // signals that there may be live events to read
	wake chan struct{} // signals that another replica began to follow a run
}

type liveFollower struct{ each func(tenon.Event) }

func newLive() liveState {
	return liveState{runs: map[string]map[*liveFollower]struct{}{}, kick: make(chan struct{}, 1),
		wake: make(chan struct{}, 1)}
}

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// noted handles a notification about live events. It reports whether the payload is one.
func (s *Store) noted(payload string) bool {
	switch to, ok := strings.CutPrefix(payload, liveNote); {
	case ok && to == s.replica:
		ring(s.live.kick)
		return true
	case ok:
		return true
	case payload == followNote:
		ring(s.live.wake)
		return true
	}
	return false
}

// FollowLive implements [store.Live].
func (s *Store) FollowLive(ctx context.Context, run string, each func(tenon.Event)) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	f := &liveFollower{each}
	s.live.row.Lock()
	s.live.add(run, f)
	s.announce(ctx, run, true)
	s.live.row.Unlock()
	ring(s.live.kick)
	ticker := time.NewTicker(s.lease / 3)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			s.announce(ctx, run, false)
		case <-ctx.Done():
		}
	}
	s.live.row.Lock()
	defer s.live.row.Unlock()
	if s.live.remove(run, f) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if _, err := s.pool.Exec(ctx, s.sql("DELETE FROM @follows WHERE run = $1 AND replica = $2"), plainText(run),
			s.replica); err != nil {
			s.log.Debug("a follower is not removed; its row expires", "store", s.name, "error", err.Error())
		}
	}
}

// announce writes the row of a follower. If fresh is set, it also notifies the other replicas.
func (s *Store) announce(ctx context.Context, run string, fresh bool) {
	_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @follows AS f (run, replica, n, expires)
		VALUES ($1, $2, nextval('@epochs'), clock_timestamp() + $3 * interval '1 microsecond')
		ON CONFLICT (run, replica) DO UPDATE SET expires = excluded.expires,
			n = CASE WHEN $4::boolean THEN excluded.n ELSE f.n END`),
		plainText(run), s.replica, s.lease.Microseconds(), fresh)
	if err == nil && fresh {
		_, err = s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", s.channel, followNote)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Debug("live events are not followed; it is tried again", "store", s.name, "error", err.Error())
	}
}

func (l *liveState) add(run string, f *liveFollower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[run] == nil {
		l.runs[run] = map[*liveFollower]struct{}{}
	}
	l.runs[run][f] = struct{}{}
}

// remove removes a follower. It reports whether it was the last follower of the run in this process.
func (l *liveState) remove(run string, f *liveFollower) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs[run], f)
	if len(l.runs[run]) > 0 {
		return false
	}
	delete(l.runs, run)
	return true
}

func (l *liveState) followers(run string) []*liveFollower {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*liveFollower, 0, len(l.runs[run]))
	for f := range l.runs[run] {
		list = append(list, f)
	}
	return list
}

func (l *liveState) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs) == 0
}

// Wake implements [store.Live].
func (s *Store) Wake() <-chan struct{} { return s.live.wake }

// Followed implements [store.Live].
func (s *Store) Followed(ctx context.Context) (list []store.LiveFollower, err error) {
	err = s.each(ctx, `SELECT f.run, f.replica, f.n FROM @follows f JOIN @leases l ON l.run = f.run
		WHERE l.owner = $1 AND f.replica <> $1 AND f.expires > clock_timestamp()`, []any{s.replica},
		func(rows pgx.Rows) error {
			var f store.LiveFollower
			err := scan(rows, &f.Run, &f.Process, &f.N)
			list = append(list, f)
			return err
		})
	return list, err
}

// PublishLive implements [store.Live]. It uses one statement, which inserts the events and sends one notification to
// each replica.
func (s *Store) PublishLive(ctx context.Context, list []store.LiveEvents) error {
	var targets, runs []string
	var events, macs [][]byte
	for _, l := range list {
		b, err := json.Marshal(l.Events)
		if err != nil {
			continue // the data is not JSON; live events may be dropped
		}
		targets, runs = append(targets, l.Process), append(runs, l.Run)
		events, macs = append(events, b), append(macs, s.key.Live(l.Process, l.Run, b))
	}
	if len(targets) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, s.sql(`WITH put AS (INSERT INTO @live (target, at, run, events, mac)
			SELECT t, clock_timestamp(), r, e, m FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])
			AS u(t, r, e, m) RETURNING target)
		SELECT pg_notify($5, $6 || target) FROM (SELECT DISTINCT target FROM put) p`),
		encode([]any{targets, runs, events, macs, s.channel, liveNote})...)
	if err != nil {
		return s.storeError("publish live events", err)
	}
	return nil
}

// readLiveEvents passes live events to the followers of this process until the store is closed.
func (s *Store) readLiveEvents() {
	for s.ctx.Err() == nil {
		var poll <-chan time.Time
		switch {
		case s.live.idle():
		case s.watch.hears.Load():
			poll = time.After(listening / 2)
		default:
			poll = time.After(readLive)
		}
		select {
		case <-s.live.kick:
		case <-poll:
		case <-s.ctx.Done():
			return
		}
		if err := s.takeLive(s.ctx); err != nil && s.ctx.Err() == nil {
			s.log.Debug("live events are not read", "store", s.name, "error", err.Error())
		}
	}
}

// takeLive reads and deletes the live events for this replica, and passes them to the followers. It ignores events that
// somebody else wrote.
func (s *Store) takeLive(ctx context.Context) error {
	type row struct {
		n      int64
		run    string
		events []byte
	}
	var list []row
	err := s.each(ctx, `DELETE FROM @live WHERE n IN (SELECT n FROM @live WHERE target = $1 ORDER BY n LIMIT $2::bigint)
		RETURNING n, run, events, mac`, []any{s.replica, maxLive}, func(rows pgx.Rows) error {
		var r row
		var mac []byte
		err := scan(rows, &r.n, &r.run, &r.events, &mac)
		if s.key.OwnLive(s.replica, r.run, r.events, mac) {
			list = append(list, r)
		}
		return err
	})
	if len(list) == maxLive {
		ring(s.live.kick)
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(a.n, b.n) })
	for _, r := range list {
		var events []tenon.Event
		if json.Unmarshal(r.events, &events) != nil {
			continue
		}
		for _, f := range s.live.followers(r.run) {
			for _, e := range events {
				if e.Seq == 0 && e.Run == r.run {
					f.each(e)
				}
			}
		}
	}
	return err
}

var _ store.Live = (*Store)(nil)
