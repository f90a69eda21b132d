package copying_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/copying"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file opens a store in a file.
func file(t *testing.T, path string, key *signed.Key, moving bool) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Key: key, Moving: moving})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// pair is a source with data and the path of a target.
type pair struct {
	*testing.T
	from, to string
	key      *signed.Key
	want     storetest.Contents
}

func newPair(t *testing.T, runs int) *pair {
	t.Helper()
	key, err := signed.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &pair{T: t, from: filepath.Join(dir, "from.db"), to: filepath.Join(dir, "to.db"), key: key}
	s := file(t, p.from, key, false)
	storetest.Populate(t, s, runs)
	p.want = storetest.Read(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// config opens both stores for a copy.
func (p *pair) config() (copying.Config, func()) {
	from, to := file(p.T, p.from, p.key, true), file(p.T, p.to, p.key, true)
	return copying.Config{From: copying.Side{Name: p.from, Store: from}, To: copying.Side{Name: p.to, Store: to}},
		func() { _, _ = from.Close(), to.Close() }
}

// compare compares the target with the contents of the source.
func (p *pair) compare() {
	p.Helper()
	s := file(p.T, p.to, p.key, false)
	if d := cmp.Diff(p.want, storetest.Read(p.T, s), cmpopts.EquateEmpty()); d != "" {
		p.Errorf("the target differs (-source +target):\n%s", d)
	}
	p.want.Turn(p.T, s)
	if p.want.Wait != 0 {
		p.Errorf("the second of two calls an hour waits %s", p.want.Wait)
	}
	if p.want.Turn(p.T, s); p.want.Wait == 0 {
		p.Error("the turn of the source was not copied")
	}
	if err := s.Append(p.Context(), store.Append{Run: "run_0001", Events: []tenon.Event{{
		Seq: p.want.Runs[len(p.want.Runs)-2].Seq + 1}}}); err != nil {
		p.Errorf("the target takes no append: %v", err)
	}
	if err := s.Close(); err != nil {
		p.Error(err)
	}
}

// TestStoreCopy_Everything copies rows of every kind, byte for byte. Afterwards the target can be used, and the source
// refuses every write, even in a process that had it open before.
func TestStoreCopy_Everything(t *testing.T) {
	p := newPair(t, 60)
	before := file(t, p.from, p.key, false)
	if err := before.Append(t.Context(), store.Append{Run: "run_0002", Events: []tenon.Event{{
		Seq: p.want.Runs[len(p.want.Runs)-3].Seq + 1}}}); err != nil {
		t.Fatal(err)
	}
	p.want = storetest.Read(t, before)
	c, done := p.config()
	steps := map[string]bool{}
	c.Progress = func(table string, _, _ int64) { steps[table] = true }
	r, err := copying.Copy(t.Context(), c)
	done()
	if err != nil {
		t.Fatal(err)
	}
	if r.Resumed || r.Rows("runs") != 60 || r.Rows("grants") != 1 || r.Rows("rates") != 1 || !steps["events"] {
		t.Errorf("report %+v, progress %v", r, steps)
	}
	p.compare()
	for name, s := range map[string]store.Store{"open before": before, "opened later": file(t, p.from, p.key, false)} {
		err := s.Append(t.Context(), store.Append{Run: "run_0001", Events: []tenon.Event{{Seq: 1 << 20}}})
		if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "it was moved to "+p.to) ||
			!strings.Contains(err.Error(), "store copy --undo") {
			t.Errorf("%s: append to the source: %v", name, err)
		}
		if err := s.PutSession(t.Context(), tenon.Session{ID: "new"}); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("%s: session of the source: %v", name, err)
		}
		if _, err := s.Run(t.Context(), "run_0001"); err != nil {
			t.Errorf("%s: the source can no longer be read: %v", name, err)
		}
	}
}

// stopping is a target that fails after some transactions, as if the process had been killed.
type stopping struct {
	store.Movable
	left int
}

var errStopped = errors.New("stopped")

func (s *stopping) Fill(ctx context.Context, table string, rows [][]any) error {
	if s.left--; s.left < 0 {
		return errStopped
	}
	return s.Movable.Fill(ctx, table, rows)
}

// TestStoreCopy_Resumed interrupts a copy after every transaction and resumes it.
func TestStoreCopy_Resumed(t *testing.T) {
	p := newPair(t, 30)
	for n := 0; ; n++ {
		c, done := p.config()
		c.To.Store = &stopping{c.To.Store, 1}
		r, err := copying.Copy(t.Context(), c)
		done()
		if err == nil {
			if n < 10 || !r.Resumed {
				t.Errorf("%d interruptions, resumed %v", n, r.Resumed)
			}
			break
		}
		if !errors.Is(err, errStopped) || n > 100 {
			t.Fatal(err)
		}
		_, err = sqlite.Open(t.Context(), sqlite.Config{Path: p.to, Key: p.key})
		if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "a copy of "+p.from+" that is not complete") {
			t.Fatalf("an incomplete copy is opened: %v", err)
		}
	}
	p.compare()
}

// TestStoreCopy_Refused checks that targets and sources that take part in another copy are refused, and that the copied
// rows are verified.
func TestStoreCopy_Refused(t *testing.T) {
	try := func(t *testing.T, c copying.Config, code tenon.Code, text string) {
		t.Helper()
		if _, err := copying.Copy(t.Context(), c); tenon.ErrorCode(err) != code || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s with %q", err, code, text)
		}
	}
	t.Run("a target with rows", func(t *testing.T) {
		p, q := newPair(t, 3), newPair(t, 3)
		p.to = q.from
		c, done := p.config()
		defer done()
		try(t, c, tenon.CodeConflict, "it is not empty")
		if m, err := c.From.Store.Move(t.Context()); err != nil || m.State != "" {
			t.Errorf("the source is marked %+v, %v", m, err)
		}
	})
	t.Run("a target of another copy", func(t *testing.T) {
		p := newPair(t, 3)
		c, done := p.config()
		defer done()
		if err := c.To.Store.SetMove(t.Context(), store.Move{State: store.Filling, Store: "other\x1b"}); err != nil {
			t.Fatal(err)
		}
		try(t, c, tenon.CodeConflict, "incomplete copy of other")
	})
	t.Run("a source that was moved elsewhere", func(t *testing.T) {
		p := newPair(t, 3)
		c, done := p.config()
		defer done()
		if err := c.From.Store.SetMove(t.Context(), store.Move{State: store.Moved, Store: "other"}); err != nil {
			t.Fatal(err)
		}
		try(t, c, tenon.CodeConflict, "it was moved to other")
	})
	t.Run("copied already", func(t *testing.T) {
		p := newPair(t, 3)
		c, done := p.config()
		defer done()
		if _, err := copying.Copy(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		try(t, c, tenon.CodeConflict, "nothing is left to do")
		if err := copying.Undo(t.Context(), c); tenon.ErrorCode(err) != tenon.CodeConflict {
			t.Errorf("a complete copy is taken back: %v", err)
		}
	})
	t.Run("a target that lost a row", func(t *testing.T) {
		p := newPair(t, 3)
		c, done := p.config()
		defer done()
		c.To.Store = &losing{Movable: c.To.Store}
		try(t, c, tenon.CodeStore, "rows of budgets are not the")
	})
}

// losing is a target that silently loses rows of budgets.
type losing struct{ store.Movable }

func (l *losing) Fill(ctx context.Context, table string, rows [][]any) error {
	if table == "budgets" {
		rows = rows[1:]
	}
	return l.Movable.Fill(ctx, table, rows)
}

// TestStoreCopy_Undo undoes an incomplete copy. The source can be used again, but the target never can.
func TestStoreCopy_Undo(t *testing.T) {
	p := newPair(t, 3)
	c, done := p.config()
	if err := copying.Undo(t.Context(), c); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("nothing to take back: %v", err)
	}
	stopped := c
	stopped.To.Store = &stopping{c.To.Store, 2}
	if _, err := copying.Copy(t.Context(), stopped); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	if err := copying.Undo(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	done()
	s := file(t, p.from, p.key, false)
	if err := s.PutSession(t.Context(), tenon.Session{ID: "new"}); err != nil {
		t.Errorf("the source refuses writes: %v", err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: p.to, Key: p.key}); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("the target is opened: %v", err)
	}
}
