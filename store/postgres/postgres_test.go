package postgres

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server returns the DSN of the server that .ci/postgres.sh has started.
func server(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("TENON_POSTGRES")
	if dsn == "" {
		t.Skip("TENON_POSTGRES is not set: make postgres starts a server and sets it")
	}
	return dsn
}

var schemas atomic.Int64

// place creates the name of an empty schema, and removes the schema after the test.
func place(t testing.TB) Config {
	t.Helper()
	c := Config{DSN: server(t), Schema: fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))}
	t.Cleanup(func() {
		admin(t, "DROP SCHEMA IF EXISTS "+c.Schema+" CASCADE")
	})
	return c
}

// admin executes a statement as the superuser.
func admin(t testing.TB, query string, args ...any) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server(t))
	if err == nil {
		_, err = conn.Exec(ctx, query, args...)
		_ = conn.Close(ctx) // err says more
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		c := place(t)
		return func() store.Store { return mustOpen(t, c) }
	})
}

// TestSignedStore runs the suite about rows with MACs, and the whole suite on a store
// with a key.
func TestSignedStore(t *testing.T) {
	storetest.RunSigned(t, func(t *testing.T) func(*signed.Key) store.Store {
		c := place(t)
		return func(key *signed.Key) store.Store {
			c := c
			c.Key = key
			return mustOpen(t, c)
		}
	})
}

// times returns how often a fault is injected: a few times in CI, or as often as the variable says, which make soak
// sets.
func times(t testing.TB, env string, few int) int {
	t.Helper()
	if s := os.Getenv(env); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return few
}

func event(seq uint64) tenon.Event {
	return tenon.Event{Seq: seq, Time: time.Unix(1, 0).UTC(), Kind: "k"}
}

func create(t testing.TB, s *Store, run string) {
	t.Helper()
	err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: run, Session: "s"}, Run: run,
		Events: []tenon.Event{event(1)}})
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, s *Store, run string, seq uint64) error {
	return s.Append(t.Context(), store.Append{Run: run, Events: []tenon.Event{event(seq)}})
}

func wantEvents(t testing.TB, s *Store, run string, want int) {
	t.Helper()
	list, err := s.Events(t.Context(), run, 0, 0)
	if err != nil || len(list) != want {
		t.Fatalf("%d events, %v; want %d", len(list), err, want)
	}
}

// TestFencing checks that a replica that has lost its lease to another one cannot write any more.
func TestFencing(t *testing.T) {
	c := place(t)
	a, b := mustOpen(t, c), mustOpen(t, c)
	create(t, a, "r")
	release, ok, err := a.Acquire("r")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := appendTo(t, a, "r", 2); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.Acquire("r"); err != nil || ok {
		t.Fatalf("a live lease was given away: %v, %v", ok, err)
	}
	// Pretend that the owner has been silent for longer than its lease.
	admin(t, "UPDATE "+c.Schema+".replicas SET expires = clock_timestamp() - interval '1 second' WHERE id = $1", a.replica)
	after, ok, err := b.Acquire("r")
	if err != nil || !ok {
		t.Fatalf("an expired lease was not taken over: %v, %v", ok, err)
	}
	defer after()
	if err := appendTo(t, a, "r", 3); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Fatalf("the old owner appends: %v", err)
	}
	if err := a.Append(t.Context(), store.Append{Run: "r", State: tenon.RunFailed}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Fatalf("the old owner changes the row: %v", err)
	}
	release() // the release of the old owner must not end the new lease
	if held, err := a.Held("r"); err != nil || !held {
		t.Fatalf("the lease of the new owner ended: %v, %v", held, err)
	}
	if err := appendTo(t, b, "r", 3); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, b, "r", 3)
}

// TestExpiredLease stops the heartbeats of a store for longer than its lease, as SIGSTOP does. Even if no other replica
// has taken the lease, the store appends nothing until a heartbeat succeeds.
func TestExpiredLease(t *testing.T) {
	c := place(t)
	c.Lease = 400 * time.Millisecond
	a, b := mustOpen(t, c), mustOpen(t, c)
	if _, ok, err := a.Acquire("r"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	create(t, a, "r")
	ctx := t.Context()
	hold := func() (release func()) {
		conn, err := pgx.Connect(ctx, server(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = conn.Exec(ctx, "BEGIN; SELECT FROM "+c.Schema+".replicas WHERE id = '"+a.replica+"' FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		for held := true; held; {
			if held, err = b.Held("r"); err != nil {
				t.Fatal(err)
			}
		}
		return func() { _ = conn.Close(ctx) }
	}
	release := hold()
	if err := appendTo(t, a, "r", 2); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("an expired lease appends: %v", err)
	}
	if err := a.Append(ctx, store.Append{Run: "r", State: tenon.RunFailed}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("an expired lease changes the row: %v", err)
	}
	if err := appendTo(t, b, "r", 2); err != nil { // a write that needs no lease still works
		t.Error(err)
	}
	release()
	for held := false; !held; {
		held, _ = b.Held("r")
	}
	if err := appendTo(t, a, "r", 3); err != nil {
		t.Errorf("a renewed lease does not append: %v", err)
	}
	release = hold()
	done := make(chan error)
	go func() { done <- appendTo(t, a, "r", 4) }()
	select {
	case err := <-done:
		t.Fatalf("the append did not wait for a heartbeat: %v", err)
	case <-time.After(c.Lease / 8):
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("after the heartbeat: %v", err)
	}
	wantEvents(t, b, "r", 4)
}
