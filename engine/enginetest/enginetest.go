// Package enginetest is the test suite for engines. It checks the rules of package engine with a small core
// whose runs are scripts. An implementation of another engine is complete when it passes.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine { … })
//	}
//
// The given function creates an empty place for each test and returns a function that opens an engine there.
// That function may be called several times. Engines open at the same time represent several processes; an
// engine opened after another was closed represents a restart. The kill test of each engine uses the same
// core, and shows that a killed process behaves like a closed engine.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// Setup configures an engine of the suite.
type Setup struct {
	Do       engine.Do
	Clock    engine.Clock // if nil, the system clock
	Parallel int          // 0 for the engine's default
}

// Place creates an empty place for engines and returns a function that opens one there with [NewCore]. The
// engine is closed by the test's cleanup, unless the test closes it before.
type Place func(t *testing.T) (open func(Setup) engine.Engine)

// Run runs the suite.
func Run(t *testing.T, place Place) {
	for name, test := range map[string]func(*testing.T, func(Setup) engine.Engine){
		"run":              testRun,
		"start_again":      testStartAgain,
		"start_errors":     testStartErrors,
		"exclusive":        testExclusive,
		"parallel":         testParallel,
		"decide":           testDecide,
		"interrupted":      testInterrupted,
		"unknown":          testUnknown,
		"do_error":         testDoError,
		"retry_after":      testRetryAfter,
		"waiting":          testWaiting,
		"expires":          testExpires,
		"signal_first":     testSignalFirst,
		"signal_other":     testSignalOther,
		"signal_errors":    testSignalErrors,
		"signal_working":   testSignalWorking,
		"question":         testQuestion,
		"question_ends":    testQuestionEnds,
		"question_lost":    testQuestionLost,
		"retry_failed":     testRetryFailed,
		"cancel_working":   testCancelWorking,
		"cancel_other":     testCancelOther,
		"cancel_waiting":   testCancelWaiting,
		"cancel_together":  testCancelTogether,
		"cancel_stubborn":  testCancelStubborn,
		"followers":        testFollowers,
		"follow_other":     testFollowOther,
		"live":             testLive,
		"close":            testClose,
		"list":             testList,
		"one_owner":        testOneOwner,
		"many_runs":        testManyRuns,
		"stuck_core":       testStuck,
		"without_an_event": testNoEvent,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code tenon.Code) {
	t.Helper()
	if tenon.ErrorCode(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, tenon.ErrorCode(err), code)
	}
}

// Result returns one result event with this data.
func Result(data string) []tenon.Event {
	return []tenon.Event{{Kind: KindResult, Data: json.RawMessage(data)}}
}

// answer is a Do that succeeds at once.
func answer(_ context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	if c.Kind == engine.CommandDecide {
		return []tenon.Event{{Kind: "decided"}}, nil
	}
	return Result(`"ok"`), nil
}

// hang returns a Do that reports its start and returns when its context ends.
func hang(begun chan<- string) engine.Do {
	return func(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- fmt.Sprintf("%s#%d", c.Step, c.Attempt)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// follow reads events to the end and checks that none is missing.
func follow(t *testing.T, e engine.Engine, run string, after uint64) (stored, live []tenon.Event, err error) {
	t.Helper()
	ctx := deadline(t)
	for ev, err := range e.Events(ctx, run, after) {
		switch {
		case err != nil:
			return stored, live, err
		case ev.Run != run || ev.Time.IsZero():
			t.Errorf("an event without its run or time: %+v", ev)
		case ev.Seq == 0:
			live = append(live, ev)
		default:
			if want := after + uint64(len(stored)) + 1; ev.Seq != want {
				t.Fatalf("got event %d, want %d", ev.Seq, want)
			}
			stored = append(stored, ev)
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("run %s does not end; its journal so far: %s", run, brief(stored))
	}
	return stored, live, nil
}

// brief formats events as "kind:step#attempt".
func brief(events []tenon.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(" " + e.Kind)
		if e.Step != "" {
			b.WriteString(":" + e.Step)
		}
		if e.Attempt > 0 {
			fmt.Fprintf(&b, "#%d", e.Attempt)
		}
	}
	return strings.TrimSpace(b.String())
}

func wantJournal(t *testing.T, e engine.Engine, run, want string) {
	t.Helper()
	stored, _, err := follow(t, e, run, 0)
	must(t, err)
	if got := brief(stored); got != want {
		t.Errorf("journal of %s:\n got %s\nwant %s", run, got, want)
	}
}

func rowOf(t *testing.T, e engine.Engine, run string) tenon.Run {
	t.Helper()
	rows, err := e.List(t.Context(), engine.Filter{Prefix: run, Limit: 1})
	must(t, err)
	if len(rows) == 0 {
		t.Fatalf("run %s is not listed", run)
	}
	return rows[0]
}

func waitFor(t *testing.T, ch <-chan string, want string) {
	t.Helper()
	select {
	case got := <-ch:
		if got != want {
			t.Fatalf("%s started, want %s", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not start", want)
	}
}

func testRun(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	must(t, e.Start(t.Context(), Calls(3, false).Spec("r", "s")))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 started:2#1 result:2#1 started:3#1 result:3#1 done")
	row := rowOf(t, e, "r")
	if row.State != tenon.RunCompleted || row.Stop != tenon.StopEnd || row.Seq != 8 || row.Session != "s" ||
		row.Created.IsZero() {
		t.Errorf("row %+v", row)
	}
	again := open(Setup{Do: answer})
	wantJournal(t, again, "r", "run started:1#1 result:1#1 started:2#1 result:2#1 started:3#1 result:3#1 done")
}

func testStartAgain(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: hang(begun)})
	spec := Calls(1, false).Spec("r", "s")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := e.Start(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	waitFor(t, begun, "1#1")
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	must(t, e.Cancel(t.Context(), "r", "enough"))
	wantJournal(t, e, "r", "run started:1#1 cancel unknown:1#1 done")
	must(t, e.Start(t.Context(), spec)) // the run has ended
	wantJournal(t, e, "r", "run started:1#1 cancel unknown:1#1 done")
	if len(begun) > 0 {
		t.Errorf("step %s ran twice", <-begun)
	}
}

func testStartErrors(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	ctx := t.Context()
	wantCode(t, e.Start(ctx, engine.Spec{Data: json.RawMessage(`{}`)}), tenon.CodeInvalid)
	wantCode(t, e.Start(ctx, engine.Spec{Run: tenon.Run{ID: "none"}}), tenon.CodeNotFound)
	wantCode(t, e.Start(ctx, engine.Spec{Run: tenon.Run{ID: "bad"}, Data: json.RawMessage(`[]`)}), tenon.CodeInvalid)
	_, _, err := follow(t, e, "none", 0)
	wantCode(t, err, tenon.CodeNotFound)
	_, _, err = follow(t, e, "bad", 0)
	wantCode(t, err, tenon.CodeNotFound)
	wantCode(t, e.Cancel(ctx, "none", ""), tenon.CodeNotFound)
	// The errors above must not prevent a valid start.
	must(t, e.Start(ctx, Calls(1, true).Spec("bad", "")))
	wantJournal(t, e, "bad", "run started:1#1 result:1#1 done")
	// A fresh id that belongs to another run.
	fresh := Calls(1, true).Spec("bad", "")
	fresh.Fresh = true
	wantCode(t, e.Start(ctx, fresh), tenon.CodeConflict)
	wantJournal(t, e, "bad", "run started:1#1 result:1#1 done")
}

func testExclusive(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e, other := open(Setup{Do: hang(begun)}), open(Setup{Do: answer})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r1", "s")))
	waitFor(t, begun, "1#1")
	wantCode(t, e.Start(t.Context(), Calls(1, false).Spec("r2", "s")), tenon.CodeConflict)
	wantCode(t, other.Start(t.Context(), Calls(1, false).Spec("r2", "s")), tenon.CodeConflict)
	must(t, other.Start(t.Context(), Calls(1, false).Spec("r3", "another")))
	must(t, e.Cancel(t.Context(), "r1", ""))
	_, _, err := follow(t, e, "r1", 0)
	must(t, err)
	// The next run continues the session at its end, and not at an earlier event of it.
	next := Calls(1, false).Spec("r2", "s")
	next.Run.Parent, next.Run.ParentSeq = "r1", 1
	wantCode(t, other.Start(t.Context(), next), tenon.CodeConflict)
	ended, err := other.List(t.Context(), engine.Filter{Prefix: "r1"})
	must(t, err)
	next.Run.ParentSeq = ended[0].Seq
	must(t, other.Start(t.Context(), next))
	wantJournal(t, other, "r2", "run started:1#1 result:1#1 done")
}

func testParallel(t *testing.T, open func(Setup) engine.Engine) {
	var mu sync.Mutex
	now, most := 0, 0
	e := open(Setup{Parallel: 3, Do: func(ctx context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return []tenon.Event{{Kind: KindNote, Step: "0"},
			{Kind: KindResult, Step: c.Step, Data: json.RawMessage(`"` + c.Step + `"`)}}, nil
	}})
	var stage []Step
	for i := range 10 {
		stage = append(stage, Step{ID: fmt.Sprint(i)})
	}
	must(t, e.Start(t.Context(), Script{Stages: [][]Step{stage}}.Spec("r", "")))
	stored, _, err := follow(t, e, "r", 0)
	must(t, err)
	if most != 3 {
		t.Errorf("%d commands at a time, want 3", most)
	}
	open3 := map[string]bool{}
	for i, ev := range stored {
		switch ev.Kind {
		case tenon.EventStarted:
			open3[ev.Step] = true
		case KindResult:
			if !open3[ev.Step] || stored[i-1].Kind != KindNote {
				t.Errorf("event %d: a result without its start, or not next to its note", ev.Seq)
			}
			delete(open3, ev.Step)
		}
		if len(open3) > 3 {
			t.Errorf("event %d: %d steps are open", ev.Seq, len(open3))
		}
	}
	if got := len(stored); got != 1+10+20+1 {
		t.Errorf("%d events: %s", got, brief(stored))
	}
}

func testDecide(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	s := Script{Stages: [][]Step{{{ID: "1", Kind: "decide"}, {ID: "2", Kind: "decide"}}, {{ID: "3"}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	wantJournal(t, e, "r", "run decided:1 decided:2 started:3#1 result:3#1 done")
}

func testInterrupted(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: hang(begun)})
	must(t, e.Start(t.Context(), Calls(2, true).Spec("r", "")))
	waitFor(t, begun, "1#1")
	must(t, e.Close())
	e = open(Setup{Do: hang(begun)})
	if row := rowOf(t, e, "r"); row.State != tenon.RunWorking {
		t.Errorf("state %s after a crash", row.State)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	waitFor(t, begun, "1#2")
	must(t, e.Close())
	e = open(Setup{Do: answer})
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r",
		"run started:1#1 interrupted:1#1 started:1#2 interrupted:1#2 started:1#3 result:1#3 started:2#1 result:2#1 "+
			"done")
}

func testUnknown(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: hang(begun)})
	s := Script{Stages: [][]Step{{{ID: "1"}}, {{ID: "2"}, {ID: "3", Idempotent: true}}, {{ID: "4"}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	waitFor(t, begun, "1#1")
	must(t, e.Close())
	e = open(Setup{Do: answer})
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	stored, _, err := follow(t, e, "r", 0)
	must(t, err)
	const want = "run started:1#1 unknown:1#1 started:2#1 started:3#1 result:"
	if got := brief(stored); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s…", got, want)
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunCompleted {
		t.Errorf("state %s", row.State)
	}
}

func testDoError(t *testing.T, open func(Setup) engine.Engine) {
	broken := errors.New("no idea what happened")
	e := open(Setup{Do: func(ctx context.Context, run string, c engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
		if c.Step == "2" && c.Attempt == 1 {
			return nil, broken
		}
		return answer(ctx, run, c, emit)
	}})
	must(t, e.Start(t.Context(), Calls(2, true).Spec("r", "s")))
	for range 2 { // the error is the same each time
		stored, _, err := follow(t, e, "r", 0)
		if !errors.Is(err, broken) {
			t.Fatalf("followers got error %v", err)
		}
		if got, want := brief(stored), "run started:1#1 result:1#1 started:2#1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunWorking {
		t.Errorf("state %s", row.State)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 started:2#1 interrupted:2#1 started:2#2 result:2#2 done")
}

// clock is a clock that only advances when it is waited for.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	waited []time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Elapsed() time.Duration { return c.Now().Sub(time.Time{}.AddDate(2025, 0, 0)) }

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waited = append(c.waited, d)
	ch := make(chan time.Time, 1)
	ch <- c.now
	return ch
}

func testRetryAfter(t *testing.T, open func(Setup) engine.Engine) {
	c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	e := open(Setup{Clock: c, Do: func(_ context.Context, _ string, a engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		if a.Attempt < 3 {
			return []tenon.Event{{Kind: KindFailed}}, nil
		}
		return Result(`"at last"`), nil
	}})
	s := Script{Stages: [][]Step{{{ID: "1", Idempotent: true, After: time.Hour}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	wantJournal(t, e, "r", "run started:1#1 failed:1#1 started:1#2 failed:1#2 started:1#3 result:1#3 done")
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.waited, []time.Duration{time.Hour, time.Hour}) {
		t.Errorf("waited %v, want an hour twice", c.waited)
	}
}
