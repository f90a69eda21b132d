package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/transcript"
)

// reading is a store that counts how often journals are read, and the runs that were stored at once with their summary.
// It can also pause the reading of summaries.
type reading struct {
	store.Store
	journals atomic.Int64
	whole    atomic.Int64
	slow     chan struct{} // if not nil, reading summaries waits until it is closed
}

func (r *reading) Append(ctx context.Context, a store.Append) error {
	err := r.Store.Append(ctx, a)
	if err == nil && len(a.Tally) > 0 {
		r.whole.Add(1)
	}
	return err
}

func (r *reading) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	r.journals.Add(1)
	return r.Store.Events(ctx, run, after, limit)
}

func (r *reading) Tallies(ctx context.Context, each func(store.Tally) error) error {
	if r.slow != nil {
		<-r.slow
	}
	return r.Store.Tallies(ctx, each)
}

// readCounting opens a host with a tool and with a store that counts reads.
func readCounting(t *testing.T) (*host.Host, *reading) {
	t.Helper()
	file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{Store: file}
	m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("the answer"), nil })
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Store: r, Model: "m",
		Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"harbour": harbour{}}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, r
}

// counts returns all statistics of a host.
func counts(t *testing.T, h *host.Host) map[string][]host.Stat {
	t.Helper()
	all := map[string][]host.Stat{}
	for _, by := range host.StatsBy() {
		list, err := h.Stats(t.Context(), host.StatsQuery{By: by, Behind: func(n int) { t.Errorf("%d runs are left out", n) }})
		if err != nil {
			t.Fatal(err)
		}
		all[by] = list
	}
	return all
}

// TestTallies checks that statistics are counted from the summaries of runs.
func TestTallies(t *testing.T) {
	t.Run("RP-26_no_journal_twice", testNoJournalTwice)
	t.Run("RP-26_deletion", testTalliesOfDeletedRuns)
	t.Run("RP-26_keep", testKeptTallies)
	t.Run("RP-26_client_calls", testKeptClientCalls)
	t.Run("RP-26_close", testTalliesAtClose)
	t.Run("RP-26_busy", testBusyStatistics)
}

func testNoJournalTwice(t *testing.T) {
	h, r := readCounting(t)
	for i := range 3 {
		ask(t, h, host.Question{Text: fmt.Sprint("question ", i)})
	}
	r.journals.Store(0)
	first := counts(t, h) // reads each journal once, and stores the summaries
	if r.journals.Load() != 3 {
		t.Errorf("%d journals were read for 3 runs", r.journals.Load())
	}
	if diff := cmp.Diff(first, counts(t, h), cmp.AllowUnexported(host.Stat{})); diff != "" || r.journals.Load() != 3 {
		t.Errorf("%d journals; from the summaries (-first +again):\n%s", r.journals.Load(), diff)
	}
	if list := first[host.StatsModels]; len(list) != 1 || list[0].Calls != 3 {
		t.Errorf("by models: %+v", list)
	}
}

func testTalliesOfDeletedRuns(t *testing.T) {
	h, _ := readCounting(t)
	left, _ := ask(t, h, host.Question{Text: "stays"})
	gone, _ := ask(t, h, host.Question{Text: "goes"})
	stale, _ := ask(t, h, host.Question{Text: "is pruned"})
	if n := counts(t, h)[host.StatsModels][0].Calls; n != 3 {
		t.Fatalf("%d calls", n)
	}
	if err := h.Sessions().Delete(t.Context(), gone.Session); err != nil {
		t.Fatal(err)
	}
	s, err := h.Sessions().Get(t.Context(), stale.Session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Service().Storage().Prune(t.Context(), []tenon.Session{s}, nil); err != nil {
		t.Fatal(err)
	}
	all := counts(t, h)
	if all[host.StatsModels][0].Calls != 1 || len(all[host.StatsSessions]) != 1 ||
		all[host.StatsSessions][0].Name != left.Session {
		t.Errorf("after the deletions: %+v", all)
	}
}

func testKeptTallies(t *testing.T) {
	h, r := readCounting(t)
	ask(t, h, host.Question{Text: "an older question"}) // as of an earlier release
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	kept := make(chan struct{})
	go func() { h.Service().Storage().State().Keep(ctx); close(kept) }()
	ask(t, h, host.Question{Text: "a newer question"})
	waitKept(t, r)
	stop()
	<-kept
	r.journals.Store(0)
	counts(t, h)
	if r.journals.Load() != 0 {
		t.Errorf("statistics read %d journals after Keep", r.journals.Load())
	}
	hits, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "question",
		Progress: func(int, int) { t.Error("the search indexes after Keep") }})
	if err != nil || len(hits) != 2 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}

// waitKept waits until summaries and index are up to date.
func waitKept(t *testing.T, r *reading) {
	t.Helper()
	for {
		changed := r.Changed(t.Context())
		_, uncounted, err := r.Uncounted(t.Context(), true, 0)
		_, unindexed, ierr := r.Unindexed(t.Context(), store.GapFilter{Ended: true})
		if err := errors.Join(err, ierr); err != nil {
			t.Fatal(err)
		}
		if uncounted+unindexed == 0 {
			return
		}
		<-changed
	}
}

// harbour is a toolset with a tool that only reads.
type harbour struct{}

func (harbour) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Name: "tide", Remote: "tide", Input: json.RawMessage(`{"type":"object"}`),
		Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (harbour) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("high water at noon")}}, nil
}

// testKeptClientCalls checks that calls of clients are indexed from memory, which costs a fraction of reading their
// journals again.
func testKeptClientCalls(t *testing.T) {
	h, r := readCounting(t)
	calls := 0
	for r.whole.Load() < 3 { // on a busy machine, a call may last so long that the engine takes it over
		c, err := host.StartClientCall(t.Context(), h, host.ToolCall{Name: "tide"}, false, func(tenon.Progress) {})
		if err != nil || !c.IsLight() {
			t.Fatalf("not a call without a journal: %v", err)
		}
		if _, _, err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls++
		if err := host.AwaitAudits(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		waitEnded(t, r, calls)
	}
	r.journals.Store(0)
	ctx, stop := context.WithCancel(t.Context())
	kept := make(chan struct{})
	go func() { h.Service().Storage().State().Keep(ctx); close(kept) }()
	waitKept(t, r)
	stop()
	<-kept
	taken := calls - int(r.whole.Load())
	if r.journals.Load() > int64(2*taken) { // one reading for the summary, one for the index
		t.Errorf("%d journals were read, but the engine took over only %d of %d calls", r.journals.Load(), taken, calls)
	}
	hits, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "water", Limit: calls,
		Progress: func(int, int) { t.Error("the search indexes after Keep") }})
	if err != nil || len(hits) != calls {
		t.Errorf("%d hits, %v", len(hits), err)
	}
}

// waitEnded waits until the store has a number of ended runs whose texts are not indexed.
func waitEnded(t *testing.T, r *reading, runs int) {
	t.Helper()
	for {
		changed := r.Changed(t.Context())
		gaps, _, err := r.Unindexed(t.Context(), store.GapFilter{Ended: true, Limit: runs})
		if err != nil {
			t.Fatal(err)
		}
		if len(gaps) == runs {
			return
		}
		<-changed
	}
}

func testTalliesAtClose(t *testing.T) {
	h, r := readCounting(t)
	for i := range 70 {
		ask(t, h, host.Question{Text: fmt.Sprint("question ", i)})
	}
	again := &again{Store: r.Store}
	r.Store = again // stays open
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, n, err := again.Uncounted(t.Context(), true, 0); err != nil || n > 0 {
		t.Errorf("%d of 70 runs are not counted after Close, %v", n, err)
	}
	_ = again.Store.Close()
}

func testBusyStatistics(t *testing.T) {
	h, r := readCounting(t)
	r.slow = make(chan struct{})
	errs := make(chan error, 40)
	for range cap(errs) {
		go func() {
			_, err := h.Stats(t.Context(), host.StatsQuery{By: host.StatsDays})
			errs <- err
		}()
	}
	refused := 0
	for ; refused < cap(errs)-18; refused++ { // 2 run and 16 wait
		if err := <-errs; !errors.Is(err, host.ErrBusy) || tenon.ErrorCode(err) != tenon.CodeLimit {
			t.Errorf("a query too many: %v", err)
		}
	}
	close(r.slow)
	for range 18 {
		if err := <-errs; err != nil {
			t.Errorf("a query that had to wait: %v", err)
		}
	}
}

// again is a store that ignores Close.
type again struct{ store.Store }

func (*again) Close() error { return nil }
