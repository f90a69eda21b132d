package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
)

// rival is a connection of another program, with a transaction under way.
type rival struct {
	t    *testing.T
	conn *pgx.Conn
}

func newRival(t *testing.T, queries ...string) *rival {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test is over
	r := &rival{t, conn}
	for _, q := range append([]string{"BEGIN"}, queries...) {
		if err := r.exec(q); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rival) exec(query string) error {
	_, err := r.conn.Exec(r.t.Context(), query)
	return err
}

func (r *rival) end() {
	if err := r.exec("ROLLBACK"); err != nil {
		r.t.Error(err)
	}
}

// repeats is a log that reports writes that are made again.
type repeats struct {
	slog.Handler
	ch chan string
}

func (r *repeats) Enabled(context.Context, slog.Level) bool { return true }

func (r *repeats) Handle(_ context.Context, rec slog.Record) error {
	if rec.Message == "a write is made again" {
		rec.Attrs(func(a slog.Attr) bool {
			select {
			case r.ch <- a.Value.String():
			default:
			}
			return true
		})
	}
	return nil
}

// slowStore opens a store with a setting of PostgreSQL. Its run r has one event, and the store has its lease.
func slowStore(t *testing.T, setting string) (*Store, Config, *repeats) {
	t.Helper()
	c, log := place(t), &repeats{Handler: slog.DiscardHandler, ch: make(chan string, 1000)}
	c.DSN += " " + setting
	c.Logger = slog.New(log)
	s := mustOpen(t, c)
	if _, ok, err := s.Acquire("r"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	create(t, s, "r")
	return s, c, log
}

func (r *repeats) until(t *testing.T, code string) {
	t.Helper()
	for {
		select {
		case text := <-r.ch:
			if strings.Contains(text, code) {
				return
			}
		case <-t.Context().Done():
			t.Fatal("no write was made again because of ", code)
		}
	}
}

// TestSlow_PG_statement_timeout lets a table be locked for longer than statement_timeout. The append waits for it, and is
// stored once.
func TestSlow_PG_statement_timeout(t *testing.T) {
	s, c, log := slowStore(t, "statement_timeout=100")
	other := newRival(t, "LOCK TABLE "+c.Schema+".events IN ACCESS EXCLUSIVE MODE")
	done := make(chan error, 1)
	go func() { done <- appendTo(t, s, "r", 2) }()
	log.until(t, "57014")
	other.end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantEvents(t, s, "r", 2)
}

// TestSlow_PG_lease locks the leases of two runs. Nobody waits for them: they are not acquired now, others are, and each
// can be acquired later.
func TestSlow_PG_lease(t *testing.T) {
	s, c, _ := slowStore(t, "statement_timeout=20s")
	admin(t, "INSERT INTO "+c.Schema+".leases (run, owner, epoch) VALUES ('dead', gen_random_uuid(), 0)")
	other := newRival(t, "SELECT 1 FROM "+c.Schema+".leases FOR UPDATE")
	next := mustOpen(t, c)
	for _, tc := range []struct {
		run  string
		want bool
	}{{"dead", false}, {"r", false}, {"new", true}} {
		if _, ok, err := next.Acquire(tc.run); ok != tc.want || err != nil {
			t.Errorf("lease of %s: %v, %v; want %v", tc.run, ok, err, tc.want)
		}
	}
	other.end()
	if _, ok, err := next.Acquire("dead"); !ok || err != nil {
		t.Error("lease of dead, not locked:", ok, err)
	}
	if held, err := s.Held("r"); !held || err != nil {
		t.Error("the lease that another replica wanted:", held, err)
	}
}

// TestSlow_PG_read checks that a read is not repeated after statement_timeout, and that a damaged row is no missing run.
func TestSlow_PG_read(t *testing.T) {
	s, c, _ := slowStore(t, "statement_timeout=500")
	create(t, s, "damaged")
	admin(t, "UPDATE "+c.Schema+".runs SET waiting = '{' WHERE id = 'damaged'")
	answers, err := s.runsOf(t.Context(), []string{"r", "damaged", "none"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tenon.Code{"", tenon.CodeStore, tenon.CodeNotFound} {
		if code := tenon.ErrorCode(answers[i].err); code != want {
			t.Errorf("run %d: %v, want %q", i, answers[i].err, want)
		}
	}
	last := func() (n int64) {
		if err := s.pool.QueryRow(t.Context(), s.sql("SELECT last_value FROM @epochs")).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := last()
	err = s.each(t.Context(), "SELECT pg_sleep(60 + 0 * nextval('@epochs'))", nil, func(pgx.Rows) error { return nil })
	if tenon.ErrorCode(err) != tenon.CodeStore || last() != before+1 {
		t.Errorf("a slow read was made %d times, and ended with %v", last()-before, err)
	}
}

// TestDeadlock_PG makes an append and another transaction wait for each other: an append that looks at its lease, and one
// that relies on the era of its leases. PostgreSQL ends one of the transactions. The append is stored once.
func TestDeadlock_PG(t *testing.T) {
	for name, row := range map[string]string{"lease": ".leases SET epoch = epoch WHERE run = 'r'",
		"writer": ".writers SET n = n WHERE slot = 0"} {
		t.Run(name, func(t *testing.T) {
			s, c, log := slowStore(t, "deadlock_timeout=50")
			if name == "lease" {
				s.forgetAll()
			}
			other := newRival(t, "LOCK TABLE "+c.Schema+".events IN SHARE MODE")
			done := make(chan error, 1)
			go func() { done <- appendTo(t, s, "r", 2) }()
			wait(t, "the append waits for the table, and has locked the row", func() bool {
				var n int
				err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted
					AND relation = $1::text::regclass`, c.Schema+".events").Scan(&n)
				return err == nil && n > 0
			})
			err := other.exec("UPDATE " + c.Schema + row)
			if err == nil { // the append was ended, and is made again
				log.until(t, "40P01")
			}
			other.end()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			wantEvents(t, s, "r", 2)
		})
	}
}

// TestMigration_PG_interrupted ends the connection of a migration between two of its steps. Nothing of it remains, and
// the next program migrates. Rows of the old schema stay.
func TestMigration_PG_interrupted(t *testing.T) {
	const old = 2
	c := place(t)
	conn, err := pgx.Connect(t.Context(), c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // the test is over
	before := newStore(&c, conn.Config())                   // only for its statements
	t.Cleanup(before.stop)
	for _, step := range slices.Concat([]string{makeVersion}, migrations[:old], []string{
		fmt.Sprintf("UPDATE @version SET version = %d, readers = %d", old, readers),
		`INSERT INTO @runs (id, session, principal, caller, parent, parent_seq, core, agent, model, title, state, stop, created,
			updated) VALUES ('r', '', '', '', '', 0, 'core', '', '', 'old', 'working', '', 0, 0)`}) {
		for _, q := range statements(step) {
			if _, err := conn.Exec(t.Context(), before.sql(q)); err != nil {
				t.Fatalf("%v: %s", err, q)
			}
		}
	}

	other := newRival(t, "CREATE TABLE "+c.Schema+".session_grants (id text)") // the migration waits for its end
	done := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), c)
		if err == nil {
			_ = s.Close()
		}
		done <- err
	}()
	for ended := false; !ended; {
		admin(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND query LIKE '%`+c.Schema+`%' AND pid <> pg_backend_pid()`)
		select {
		case err = <-done:
			ended = true
		default:
		}
	}
	if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "migrate to version") {
		t.Errorf("error %v", err)
	}
	other.end()
	var version int
	var there bool
	if err := conn.QueryRow(t.Context(), "SELECT version, to_regclass('"+c.Schema+".follows') IS NOT NULL FROM "+c.Schema+
		".version").Scan(&version, &there); err != nil || version != old || there {
		t.Errorf("version %d, a table of the migration exists: %v, %v; want version %d without it", version, there, err, old)
	}
	if run, err := mustOpen(t, c).Run(t.Context(), "r"); err != nil || run.Title != "old" {
		t.Errorf("the run of the old schema: %+v, %v", run, err)
	}
}
