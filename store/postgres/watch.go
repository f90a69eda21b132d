package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pollEvery is how often changes by others are looked for without a connection that listens, while somebody waits.
	pollEvery = 40 * time.Millisecond
	// listening is how often they are looked for besides: a notification can be lost.
	listening = time.Second
	// listenAgain is the pause before the next attempt to listen.
	listenAgain = 2 * time.Second
)

// watch notifies waiting callers of changes of the store.
type watch struct {
	mu      sync.Mutex
	ch      chan struct{}
	waiters map[*func() bool]struct{} // how to stop looking at their contexts
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

// hintOthers has the other replicas notified soon.
func (s *Store) hintOthers() {
	select {
	case s.hint <- struct{}{}:
	default: // the next one is for this change too
	}
}

// notifyOthers sends notifications. It does so after the commits, because a NOTIFY within a transaction has all commits
// of the server wait for each other. One is for all writes since the last one. The payload is the replica: any role may
// listen.
func (s *Store) notifyOthers() {
	for {
		select {
		case <-s.hint:
		case <-s.ctx.Done():
			return
		}
		ctx, stop := context.WithTimeout(s.ctx, s.lease)
		_, err := s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", s.channel, s.replica)
		if err != nil && s.ctx.Err() == nil {
			s.log.Debug("no notification of other replicas; they poll", "store", s.name, "error", err.Error())
		}
		stop()
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
		_ = conn.Close(ctx) // err says more
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

// poll looks for changes by others while somebody waits for them.
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

// others returns a text that changes with each change by another replica: each of their transactions adds 1 to a row of
// writers, each lease has another epoch, and a replica that dies is counted. The three numbers are not added: the end
// of a run adds a transaction and takes an epoch away.
func (s *Store) others(ctx context.Context) (state string, err error) {
	err = s.each(ctx, `SELECT concat_ws(' ', (SELECT coalesce(sum(n), 0) FROM @writers WHERE replica <> $1),
		(SELECT coalesce(sum(epoch), 0) FROM @leases WHERE owner <> $1),
		(SELECT count(*) FROM @replicas WHERE expires <= clock_timestamp() AND id <> $1))`,
		[]any{s.replica},
		func(rows pgx.Rows) error { return rows.Scan(&state) })
	return state, err
}
