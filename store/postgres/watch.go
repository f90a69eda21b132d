package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pollEvery is the interval of polls for changes by other replicas if no connection listens. There are polls only
	// while a caller waits.
	pollEvery = 40 * time.Millisecond
	// listening is the interval of polls while a connection listens, because a notification can be lost.
	listening = time.Second
	// notifyPause is the pause after a notification. The next one covers all changes in between. A notification costs
	// the server as much as an append.
	notifyPause = 20 * time.Millisecond
	// listenAgain is the pause before the next attempt to listen.
	listenAgain = 2 * time.Second
)

// watch notifies waiting callers of changes of the store.
type watch struct {
	mu      sync.Mutex
	ch      chan struct{}
	waiters map[*func() bool]struct{} // functions that stop waiting for the callers' contexts
	hears   atomic.Bool               // a connection listens
}

// Changed implements [store.Leases].
func (s *Store) Changed(ctx context.Context) <-chan struct{} { return s.watch.next(ctx) }

func (w *watch) next(ctx context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
		w.waiters = make(map[*func() bool]struct{})
	}
	stop := new(func() bool)
	*stop = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiters, stop)
	})
	w.waiters[stop] = struct{}{}
	return w.ch
}

func (w *watch) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiters) > 0
}

func (w *watch) notify() {
	w.mu.Lock()
	ch, waiters := w.ch, w.waiters
	w.ch, w.waiters = nil, nil
	w.mu.Unlock()
	for stop := range waiters {
		(*stop)()
	}
	if ch != nil {
		close(ch)
	}
}

// hintOthers requests a notification of the other replicas. It does not wait for it.
func (s *Store) hintOthers() {
	select {
	case s.hint <- struct{}{}:
	default: // the pending request covers this change
	}
}

// notifyOthers sends the requested notifications. It sends them after the commits, because transactions that contain a
// NOTIFY commit one after the other in the whole server. One notification covers all writes since the last one. The
// payload contains only the id of this replica, because any role may listen. A transaction with a NOTIFY has a commit
// record, for which the next append would have to wait if it had to be on disk.
func (s *Store) notifyOthers() {
	for {
		select {
		case <-s.hint:
		case <-s.ctx.Done():
			return
		}
		ctx, stop := context.WithTimeout(s.ctx, s.lease)
		_, err := s.pool.Exec(ctx, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", s.channel,
			s.replica)
		if err != nil && s.ctx.Err() == nil {
			s.log.Debug("no notification of other replicas; they poll", "store", s.name, "error", err.Error())
		}
		stop()
		select {
		case <-time.After(notifyPause):
		case <-s.ctx.Done():
		}
	}
}

// listen receives the notifications of other replicas until the store is closed.
func (s *Store) listen(conf *pgx.ConnConfig) {
	for s.ctx.Err() == nil {
		if err := s.listenOnce(conf); err != nil && s.ctx.Err() == nil {
			s.log.Debug("no notifications by other replicas; they are polled", "store", s.name, "error", err.Error())
		}
		s.watch.hears.Store(false)
		select {
		case <-time.After(listenAgain):
		case <-s.ctx.Done():
		}
	}
}

func (s *Store) listenOnce(conf *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(s.ctx, conf.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		_ = conn.Close(ctx) // the other error has more detail
	}()
	if _, err := conn.Exec(s.ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return err
	}
	s.watch.hears.Store(true)
	for {
		n, err := conn.WaitForNotification(s.ctx)
		if err != nil {
			return err
		}
		if !s.noted(n.Payload) && n.Payload != s.replica {
			s.watch.notify()
		}
	}
}

// poll checks for changes by other replicas while callers wait for changes.
func (s *Store) poll(last string) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var looked time.Time
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		if !s.watch.waiting() || s.watch.hears.Load() && time.Since(looked) < listening {
			continue
		}
		looked = time.Now()
		if n, err := s.others(s.ctx); err == nil && n != last {
			last = n
			s.watch.notify()
		}
	}
}

// others returns a text that differs after each change by another replica. It consists of three numbers: the number of
// the other replicas' transactions, the sum of the epochs of their leases, and the number of replicas that have died.
// The numbers are not added up, because the end of a run increases the first and decreases the second.
func (s *Store) others(ctx context.Context) (state string, err error) {
	err = s.each(ctx, `SELECT concat_ws(' ', (SELECT coalesce(sum(n), 0) FROM @writers WHERE replica <> $1),
		(SELECT coalesce(sum(epoch), 0) FROM @leases WHERE owner <> $1),
		(SELECT count(*) FROM @replicas WHERE expires <= clock_timestamp() AND id <> $1))`,
		[]any{s.replica},
		func(rows pgx.Rows) error { return rows.Scan(&state) })
	return state, err
}
