package postgres

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestReleaseWaits releases a lease while an append to its run is under way without a lock of the lease. The release
// waits, and others do not wait for it. The append does not make the position known again: from the commit of the
// release on, an append that relies on it would be stored without a lease.
func TestReleaseWaits(t *testing.T) {
	c, a, b := held(t, "r1")
	tx := &tx{s: a, guess: true, runs: map[string]*position{}, epochs: map[string]int64{}}
	if err := tx.recall(targets{runs: []string{"r1"}}); err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		a.release("r1", tx.epochs["r1"])
	}()
	for a.knows(targets{runs: []string{"r1"}}) {
		continue // until the release has begun
	}
	for range 50 {
		release, ok, err := a.Acquire("r2")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		release()
		takeOver(t, b, "r1", false)
	}
	row := newRival(t, "SELECT 1 FROM "+c.Schema+".leases WHERE run = 'r1' FOR UPDATE")
	tx.remember([]string{"r1"}, nil)
	wait(t, "the release waits for the row of the lease", func() bool {
		var n int
		err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND query LIKE '%DELETE%' AND query LIKE $1`, "%"+c.Schema+"%").Scan(&n)
		return err == nil && n > 0
	})
	wantKnown(t, a, "r1", false)
	row.end()
	<-released
	takeOver(t, b, "r1", true)
}

// TestLimbo loses the connection of an append that the server is still making, and gets no answer to the look-up. Nobody
// gets the lease of the run before the append has ended, also if its owner gives the lease back.
func TestLimbo(t *testing.T) {
	for name, leave := range map[string]func(*Store){
		"released": func(a *Store) { a.release("r1", a.leases["r1"]) },
		"closed": func(a *Store) { // as Close, which also waits for the server to close the connection
			a.stop()
			a.leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := place(t)
			b := mustOpen(t, c)
			var down atomic.Bool
			c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if down.Load() { // the client cannot cancel its statements, either
					return nil, errCut
				}
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			c.patience, c.Lease = 2*time.Second, time.Second
			a, _ := heldIn(t, c, "r1", "r2")
			table := newRival(t, "LOCK TABLE "+c.Schema+".events IN SHARE MODE")
			down.Store(true)
			if err := appendTo(t, a, "r1", 2); !errors.Is(err, errUnknown) {
				t.Fatalf("an append without an answer: %v", err)
			}
			down.Store(false)
			leave(a)
			takeOver(t, b, "r1", false)
			if name == "released" {
				renew(t, a) // deletes leases that it does not know
				takeOver(t, b, "r1", false)
				takeOver(t, a, "r1", false)
				err := a.DeleteSession(t.Context(), "s")
				if err == nil || !strings.Contains(err.Error(), "cannot be deleted yet") {
					t.Errorf("the session is deleted: %v", err)
				}
			}
			table.end()
			wait(t, "the append ends, and the lease is free", func() bool {
				_, ok, err := b.Acquire("r1")
				return ok && err == nil
			})
			wantEvents(t, b, "r1", 2)
			if name == "released" {
				if err := appendTo(t, a, "r2", 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLimbo_late releases a lease while an append to its run has not reached the server. The append fails.
func TestLimbo_late(t *testing.T) {
	_, a, b := held(t, "r1", "r2")
	k := a.known["r1"]
	a.limbo.Store(1000)
	a.release("r1", k.epoch)
	takeOver(t, b, "r1", true)
	_, err := a.pool.Exec(t.Context(), a.sql(`SELECT @append_rows($1, $2, 0, 1000, NULL, NULL, NULL, NULL, NULL, NULL,
		NULL)`), a.replica, k.era)
	if !isWrongGuess(err) {
		t.Errorf("the late append: %v", err)
	}
	if err := appendTo(t, a, "r2", 2); err != nil {
		t.Error(err)
	}
}
