package postgres

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// held opens two replicas. The first one has the leases of the runs and has appended to them, so that it knows their
// positions.
func held(t *testing.T, runs ...string) (c Config, a, b *Store) {
	t.Helper()
	c = place(t)
	a, b = heldIn(t, c, runs...)
	return c, a, b
}

func heldIn(t *testing.T, c Config, runs ...string) (a, b *Store) {
	t.Helper()
	a, b = mustOpen(t, c), mustOpen(t, c)
	for _, run := range runs {
		if _, ok, err := a.Acquire(run); err != nil || !ok {
			t.Fatal(ok, err)
		}
		create(t, a, run)
	}
	for _, run := range runs {
		wantKnown(t, a, run, true)
	}
	return a, b
}

func wantKnown(t *testing.T, s *Store, run string, want bool) {
	t.Helper()
	if got := s.knows(targets{runs: []string{run}}); got != want {
		t.Fatalf("the position of %s is known: %t, want %t", run, got, want)
	}
}

// silence makes a replica seem to have been silent for longer than its lease, until renew.
func silence(t *testing.T, c Config, s *Store) {
	t.Helper()
	admin(t, "UPDATE "+c.Schema+".replicas SET expires = clock_timestamp() - interval '1 second' WHERE id = $1", s.replica)
}

func renew(t *testing.T, s *Store) {
	t.Helper()
	if err := s.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func takeOver(t *testing.T, s *Store, run string, want bool) {
	t.Helper()
	if _, ok, err := s.Acquire(run); err != nil || ok != want {
		t.Fatalf("run %s is taken over: %t, %v; want %t", run, ok, err, want)
	}
}

func eraOf(t *testing.T, c Config, s *Store) (era int64) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), "SELECT era FROM "+c.Schema+".writers WHERE replica = $1 AND slot = 0",
		s.replica).Scan(&era)
	if err != nil {
		t.Fatal(err)
	}
	return era
}

// TestEra lets a replica lose one of its leases and then renew the others. It cannot append to the run that it has lost,
// although it knew its position, and goes on with the others.
func TestEra(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, Config, *Store, *Store){
		"taken over": func(t *testing.T, _ Config, _, b *Store) { takeOver(t, b, "r1", true) },
		"deleted": func(t *testing.T, c Config, _, b *Store) { // as sweep does
			admin(t, "DELETE FROM "+c.Schema+".leases WHERE run = 'r1'")
			takeOver(t, b, "r1", true)
		},
		"its row of writers is deleted, too": func(t *testing.T, c Config, a, b *Store) {
			admin(t, "DELETE FROM "+c.Schema+".leases WHERE run = 'r1'")
			admin(t, "DELETE FROM "+c.Schema+".writers WHERE replica = $1", a.replica)
			takeOver(t, b, "r1", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, a, b := held(t, "r1", "r2")
			silence(t, c, a)
			lose(t, c, a, b)
			renew(t, a)
			wantKnown(t, a, "r1", true) // it does not know of its loss
			if err := appendTo(t, a, "r1", 2); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Fatalf("the old owner appends: %v", err)
			}
			if err := appendTo(t, b, "r1", 2); err != nil {
				t.Fatal(err)
			}
			for seq := range uint64(3) {
				if err := appendTo(t, a, "r2", seq+2); err != nil {
					t.Fatal(err)
				}
				wantKnown(t, a, "r2", true)
			}
			wantEvents(t, b, "r1", 2)
			wantEvents(t, b, "r2", 4)
		})
	}
}

// TestEra_writing tries to take a lease while its owner has an append under way that does not lock the lease. The lease
// is not taken before the append has ended, also by a program that deletes it or that deletes the session.
func TestEra_writing(t *testing.T) {
	c, a, b := held(t, "r1", "r2")
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // the test is over
	k := a.known["r1"]
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, a.sql(`SELECT @append_rows($1, $2, 0, 1000, ARRAY[$3::bigint], ARRAY[2::bigint],
		ARRAY[1::bigint], ARRAY[0::bigint], ARRAY[''::bytea], NULL, NULL)`), a.replica, k.era, k.pos.n)
	if err != nil {
		t.Fatal(err)
	}
	silence(t, c, a)
	takeOver(t, b, "r1", false)
	takeOver(t, b, "r2", false)
	admin(t, "DELETE FROM "+c.Schema+".leases WHERE run = 'r1'")
	takeOver(t, b, "r1", false)
	if err := b.DeleteSession(ctx, "s"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("the session is deleted: %v", err)
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	takeOver(t, b, "r1", true)
	takeOver(t, b, "r2", true)
	r, err := b.Run(ctx, "r1")
	if err != nil || r.Seq != 2 {
		t.Errorf("the run ends with event %d, %v; want 2, which was committed before the lease was taken", r.Seq, err)
	}
	_, err = conn.Exec(ctx, a.sql(`SELECT @append_rows($1, $2, 0, 1001, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`),
		a.replica, k.era)
	if !isWrongGuess(err) {
		t.Errorf("an append of the old era: %v", err)
	}
}

// TestEra_own checks that a replica that releases leases, and deletes a session, stays in its era. Each new era costs a
// look at all leases.
func TestEra_own(t *testing.T) {
	c, a, _ := held(t, "r1", "r2")
	era := eraOf(t, c, a)
	release, ok, err := a.Acquire("r3")
	if err != nil || !ok || era == 0 {
		t.Fatal(ok, err, era)
	}
	create(t, a, "r3")
	release()
	if _, err := a.pool.Exec(t.Context(), a.sql("INSERT INTO @leases VALUES ('stray', $1, 1)"), a.replica); err != nil {
		t.Fatal(err)
	}
	renew(t, a)
	for _, run := range []string{"r3", "stray"} {
		if held, err := a.Held(run); err != nil || held {
			t.Errorf("the lease of %s is held: %t, %v", run, held, err)
		}
	}
	if err := a.Append(t.Context(), store.Append{Create: &tenon.Run{ID: "x", Session: "other"}, Run: "x",
		Events: []tenon.Event{event(1)}}); err != nil {
		t.Fatal(err)
	}
	if err := a.DeleteSession(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if now := eraOf(t, c, a); now != era {
		t.Errorf("era %d, want %d", now, era)
	}
	silence(t, c, a)
	if err := a.DeleteSession(t.Context(), "s"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("a session whose runs are in use in this process is deleted: %v", err)
	}
}

// TestLostCommits takes back the last commit of a replica, as a fail-over to an asynchronous standby does. The next
// append to its run is refused: it would leave a gap in the journal. That is so, too, if another transaction of the
// replica is stored first. It raises the number of the last transaction, so that the number alone shows no loss.
func TestLostCommits(t *testing.T) {
	for name, between := range map[string]func(*testing.T, Config, *Store, *cutter){
		"at once": func(*testing.T, Config, *Store, *cutter) {},
		"after a look-up": func(t *testing.T, _ Config, a *Store, cut *cutter) {
			cut.mu.Lock()
			cut.before = 1
			cut.mu.Unlock()
			if err := appendTo(t, a, "r1", 2); err != nil || cut.cut.Load() == 0 {
				t.Fatal(err, cut.cut.Load())
			}
		},
		"after the row of another run": func(t *testing.T, _ Config, a *Store, _ *cutter) { create(t, a, "r3") },
		"after the row of another run, with a sequence that goes back": func(t *testing.T, c Config, a *Store, _ *cutter) {
			admin(t, "SELECT setval('"+c.Schema+".epochs', $1, false)", a.known["r2"].era)
			create(t, a, "r3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cut := &cutter{}
			c := place(t)
			c.dial = cut.dial
			a, b := heldIn(t, c, "r1", "r2")
			if err := appendTo(t, a, "r2", 2); err != nil {
				t.Fatal(err)
			}
			wantKnown(t, a, "r2", true)
			admin(t, "DELETE FROM "+c.Schema+".events WHERE seq = 2")
			admin(t, "UPDATE "+c.Schema+".writers SET n = n - 1 WHERE slot = 0 AND replica = $1", a.replica)
			between(t, c, a, cut)
			if err := appendTo(t, a, "r2", 3); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Errorf("an append after a lost commit: %v", err)
			}
			wantEvents(t, b, "r2", 1)
			if err := appendTo(t, a, "r2", 2); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOldWriter executes the statements of a program of schema 7, which locks the lease of each run. It registers, takes
// leases and gives them back, and its lock keeps others away.
func TestOldWriter(t *testing.T) {
	c, a, b := held(t, "r1")
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // the test is over
	do := func(query string, args ...any) int64 {
		t.Helper()
		tag, err := conn.Exec(ctx, a.sql(query), args...)
		if err != nil {
			t.Fatalf("%v: %s", err, query)
		}
		return tag.RowsAffected()
	}
	do(`INSERT INTO @replicas (id, name, began, expires) VALUES ('old', '', clock_timestamp(), clock_timestamp())`)
	do("INSERT INTO @writers SELECT 'old', i, 0 FROM generate_series(0, 1) i")
	silence(t, c, a)
	if n := do("UPDATE @leases SET owner = 'old', epoch = nextval('@epochs') WHERE run = 'r1'"); n != 1 {
		t.Fatalf("%d leases taken, want 1", n)
	}
	renew(t, a)
	if err := appendTo(t, a, "r1", 2); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("the old owner appends: %v", err)
	}
	do("BEGIN")
	do(`WITH stored AS (INSERT INTO @writers AS w (replica, slot, n) VALUES ('old', 0, 1)
		ON CONFLICT (replica, slot) DO UPDATE SET n = excluded.n WHERE w.n < excluded.n RETURNING 1)
		SELECT 1 / count(*) FROM stored`)
	do("SELECT l.run FROM @leases l WHERE l.run = 'r1' AND l.owner = 'old' FOR SHARE OF l")
	takeOver(t, b, "r1", false)
	do("COMMIT")
	takeOver(t, b, "r1", true)
	do("INSERT INTO @leases VALUES ('r2', 'old', 1)")
	if n := do("DELETE FROM @leases WHERE run = 'r2' AND owner = 'old' AND epoch = 1"); n != 1 {
		t.Errorf("%d leases released, want 1", n)
	}
}

// TestUnheld_PG looks for runs that no live replica has the lease of. Unlike other stores, this one leaves out the
// others, so that a search of many replicas reads few rows.
func TestUnheld_PG(t *testing.T) {
	c, a, b := held(t, "r1", "r2")
	create(t, b, "r3")
	want := func(when string, want ...string) {
		t.Helper()
		for _, except := range []func(string) bool{nil, func(string) bool { return false }} {
			rows, err := b.Runs(t.Context(), store.RunFilter{State: tenon.RunWorking, Unheld: true, Except: except})
			var got []string
			for _, r := range rows {
				got = append(got, r.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: found %q, %v; want %q", when, got, err, want)
			}
		}
	}
	want("two leases", "r3")
	silence(t, c, a)
	want("the owner has expired", "r3", "r2", "r1")
	takeOver(t, b, "r1", true)
	want("one is taken over", "r3", "r2")
	renew(t, a)
	want("the owner is back", "r3")
	a.release("r2", a.leases["r2"])
	want("one is released", "r3", "r2")
}

// TestPrepared takes the prepared statement away, as a pooler does that gives each transaction another session but
// reports the process of the server. The next append is stored, and no later one is prepared.
func TestPrepared(t *testing.T) {
	_, a, b := held(t, "r1")
	for seq := range uint64(2) {
		if err := appendTo(t, a, "r1", seq+2); err != nil {
			t.Fatal(err)
		}
	}
	if a.unnamed.Load() {
		t.Fatal("no statement was prepared")
	}
	for seq := uint64(4); seq < 30; seq++ {
		for _, conn := range a.pool.AcquireAllIdle(t.Context()) { // the pool may use another one than last time
			if _, err := conn.Exec(t.Context(), "DEALLOCATE ALL"); err != nil {
				t.Fatal(err)
			}
			conn.Release()
		}
		if err := appendTo(t, a, "r1", seq); err != nil {
			t.Fatal(err)
		}
		wantKnown(t, a, "r1", true)
	}
	if !a.unnamed.Load() {
		t.Error("the statement is still believed to be prepared")
	}
	wantEvents(t, b, "r1", 29)
}
