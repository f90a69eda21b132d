package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// cutter is a dialer whose connections break at the end of a transaction that writes: before the server receives it, or
// before the client receives the answer.
type cutter struct {
	mu     sync.Mutex
	before int // number of the next COMMITs that are lost
	after  int // number of the COMMITs after them whose answers are lost
	cut    atomic.Int64
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, c: c}, nil
}

type cutConn struct {
	net.Conn
	c    *cutter
	deaf atomic.Bool
}

var errCut = errors.New("the test cut the connection")

func (c *cutConn) Write(b []byte) (int, error) {
	if !endsWrite(b) {
		return c.Conn.Write(b)
	}
	c.c.mu.Lock()
	before, after := c.c.before > 0, c.c.before == 0 && c.c.after > 0
	if before {
		c.c.before--
	} else if after {
		c.c.after--
	}
	c.c.mu.Unlock()
	switch {
	case before:
		c.c.cut.Add(1)
		_ = c.Close()
		return 0, errCut
	case after:
		c.c.cut.Add(1)
		c.deaf.Store(true)
	}
	return c.Conn.Write(b)
}

// endsWrite reports whether bytes for the server contain the last statement of a transaction that writes. The name of
// the prepared statement follows the empty name of its portal, but only where it is executed.
func endsWrite(b []byte) bool {
	return bytes.Contains(b, []byte("COMMIT\x00")) || bytes.Contains(b, []byte("\x00"+appendRows.name+"\x00")) ||
		bytes.Contains(b, []byte("append_rows(")) && !bytes.Contains(b, []byte(appendRows.name))
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() && err == nil { // the server has answered, so the transaction is committed
		_ = c.Close()
		return 0, errCut
	}
	return n, err
}

// TestLostCommit loses COMMITs, or only their answers. Each write is stored once, and reported as successful.
func TestLostCommit(t *testing.T) {
	for name, set := range map[string]func(*cutter){
		"commit":       func(c *cutter) { c.before = 1 },
		"answer":       func(c *cutter) { c.after = 1 },
		"commit twice": func(c *cutter) { c.before = 2 },
		"both":         func(c *cutter) { c.before, c.after = 1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			conf, cut := place(t), &cutter{}
			conf.dial = cut.dial
			s := mustOpen(t, conf)
			create(t, s, "r")
			for i := range 20 {
				if i == 10 { // from now on, the writes rely on the lease; see known.go
					if _, ok, err := s.Acquire("r"); err != nil || !ok {
						t.Fatal(ok, err)
					}
				}
				if i > 11 {
					wantKnown(t, s, "r", true)
				}
				cut.mu.Lock()
				set(cut)
				cut.mu.Unlock()
				if err := appendTo(t, s, "r", uint64(i+2)); err != nil {
					t.Fatalf("append %d: %v", i, err)
				}
				cut.mu.Lock()
				set(cut)
				cut.mu.Unlock()
				charges := []store.Charge{{Key: "k", Amount: 1}}
				if _, err := s.Reserve(t.Context(), "r", fmt.Sprint(i), charges); err != nil {
					t.Fatal(err)
				}
				cut.mu.Lock()
				set(cut)
				cut.mu.Unlock()
				if err := s.Settle(t.Context(), "r", fmt.Sprint(i), []int64{1}); err != nil {
					t.Fatal(err)
				}
			}
			wantEvents(t, s, "r", 21)
			balances, err := s.Balances(t.Context(), "k")
			if err != nil || len(balances) != 1 || balances[0].Used != 20 {
				t.Errorf("balances %+v, %v; want 20 used", balances, err)
			}
			if cut.cut.Load() < 60 {
				t.Errorf("%d connections were cut, want 60 or more", cut.cut.Load())
			}
		})
	}
}

// TestLostCommit_PG_late looks up a transaction that the server has not read yet. The transaction then fails when the
// server reads it, because the write may have been made again by then. A write that follows is stored.
func TestLostCommit_PG_late(t *testing.T) {
	s := mustOpen(t, place(t))
	create(t, s, "r")
	sl := <-s.slots
	sl.n++
	late := *sl
	if _, ok := errors.AsType[notCommitted](s.lookUp(sl, errCut)); !ok {
		t.Fatal("the transaction was found, though it has not begun")
	}
	for _, begin := range []string{beginWrite, beginAnyWrite} {
		if _, err := s.pool.Exec(t.Context(), s.sql(begin), s.replica, late.id, late.n, late.last); err == nil ||
			!strings.Contains(err.Error(), "division by zero") {
			t.Errorf("the late transaction: %v", err)
		}
	}
	s.slots <- sl
	for range cap(s.slots) {
		if err := s.Release(t.Context(), "r"); err != nil {
			t.Error(err)
		}
	}
	sl = <-s.slots
	if err := s.lookUp(sl, errCut); err != nil {
		t.Errorf("a transaction that was committed: %v", err)
	}
	s.slots <- sl
}

// TestKilledBackends kills connections of many writers at random times. No write is lost or stored twice.
func TestKilledBackends(t *testing.T) {
	conf := place(t)
	const runs, steps = 8, 40
	replicas := []*Store{mustOpen(t, conf), mustOpen(t, conf)}
	ctx, stop := context.WithCancel(t.Context())
	var killer, writers sync.WaitGroup
	killer.Go(func() {
		for ctx.Err() == nil {
			admin(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'
				AND pid <> pg_backend_pid() AND query LIKE '%`+conf.Schema+`%' AND random() < 0.5`)
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		}
	})
	for i := range runs {
		s, run := replicas[i%2], fmt.Sprint("r", i)
		writers.Go(func() {
			var err error
			if i%4 < 2 { // with a lease, the writes need not look at the position
				_, _, err = s.Acquire(run)
			}
			if err == nil {
				err = s.Append(ctx, store.Append{Create: &tenon.Run{ID: run, Session: run}, Run: run,
					Events: []tenon.Event{event(1)}})
			}
			for n := range steps {
				if err == nil {
					err = appendTo(t, s, run, uint64(n+2))
				}
			}
			if err != nil {
				t.Errorf("run %s: %v", run, err)
			}
		})
	}
	writers.Wait()
	stop()
	killer.Wait()
	for i := range runs {
		wantEvents(t, replicas[(i+1)%2], fmt.Sprint("r", i), steps+1)
	}
}

// TestHeartbeat checks that a live replica keeps its lease for longer than the lease's duration, and that others are
// notified when a replica dies.
func TestHeartbeat(t *testing.T) {
	conf := place(t)
	conf.Lease = 300 * time.Millisecond
	a, b := mustOpen(t, conf), mustOpen(t, conf)
	if _, ok, err := a.Acquire("r"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	time.Sleep(3 * conf.Lease)
	if _, ok, err := b.Acquire("r"); err != nil || ok {
		t.Fatalf("the lease of a live replica was given away: %v, %v", ok, err)
	}
	a.stop() // stops only the heartbeats, as if the replica had died
	for {
		release, ok, err := b.Acquire("r")
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			release()
			return
		}
		select {
		case <-b.Changed(t.Context()): // the death of a replica is reported as a change
		case <-time.After(10 * time.Second):
			t.Fatal("nobody is told that a replica died")
		}
	}
}
