// Package enginetest is the suite that every engine passes: the rules of package
// engine in a form that runs, with a small core of its own whose runs are
// scripts. A driver for another engine is done when this suite says so.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine { … })
//	}
//
// The given function makes an empty place for each test; what it returns opens
// an engine there, and may be called several times: engines that are open at a
// time stand for several processes, one that is opened after another was closed
// stands for a restart. That a kill is as good as a restart is shown by the kill
// test of each driver, which uses the same core.
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

// Setup is what an engine of the suite is made from.
type Setup struct {
	Do       engine.Do
	Clock    engine.Clock // nil: the real one
	Parallel int          // 0: the engine's default
}

// Place makes an empty place for an engine and returns what opens one there with
// [NewCore]. The engine is closed by the test's cleanup, if not before.
type Place func(t *testing.T) (open func(Setup) engine.Engine)

// Run checks an engine.
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
		"signal_first":     testSignalFirst,
		"signal_other":     testSignalOther,
		"signal_errors":    testSignalErrors,
		"signal_working":   testSignalWorking,
		"retry_failed":     testRetryFailed,
		"cancel_working":   testCancelWorking,
		"cancel_other":     testCancelOther,
		"cancel_waiting":   testCancelWaiting,
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

// Result is what a call gives: one result event with this data.
func Result(data string) []tenon.Event {
	return []tenon.Event{{Kind: KindResult, Data: json.RawMessage(data)}}
}

// answer is the Do of tests that care for other things.
func answer(_ context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	if c.Kind == engine.CommandDecide {
		return []tenon.Event{{Kind: "decided"}}, nil
	}
	return Result(`"ok"`), nil
}

// hang is a Do that says when it begins and ends with its context.
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

// follow reads events to the end and checks that there is no gap.
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
				t.Fatalf("event %d came, want %d", ev.Seq, want)
			}
			stored = append(stored, ev)
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("run %s does not end; its journal so far: %s", run, brief(stored))
	}
	return stored, live, nil
}

// brief writes events as "kind:step#attempt".
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
			t.Fatalf("%s began, want %s", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not begin", want)
	}
}

func testRun(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	must(t, e.Start(t.Context(), Calls(3, false).Spec("r", "s")))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 started:2#1 result:2#1 started:3#1 result:3#1 done")
	row := rowOf(t, e, "r")
	if row.State != tenon.RunCompleted || row.Stop != tenon.StopEnd || row.Seq != 8 || row.Session != "s" || row.Created.IsZero() {
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
	must(t, e.Start(t.Context(), spec)) // it has ended
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
	// None of that is in the way of a good start.
	must(t, e.Start(ctx, Calls(1, true).Spec("bad", "")))
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
	must(t, other.Start(t.Context(), Calls(1, false).Spec("r2", "s")))
	wantJournal(t, other, "r2", "run started:1#1 result:1#1 done")
}

func testParallel(t *testing.T, open func(Setup) engine.Engine) {
	var mu sync.Mutex
	now, most := 0, 0
	e := open(Setup{Parallel: 3, Do: func(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return []tenon.Event{{Kind: KindNote, Step: "0"}, {Kind: KindResult, Step: c.Step, Data: json.RawMessage(`"` + c.Step + `"`)}}, nil
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
				t.Errorf("event %d: a result without its start, or not beside what came with it", ev.Seq)
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
	wantJournal(t, e, "r", "run started:1#1 interrupted:1#1 started:1#2 interrupted:1#2 started:1#3 result:1#3 started:2#1 result:2#1 done")
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
	if got, want := brief(stored), "run started:1#1 unknown:1#1 started:2#1 started:3#1 result:"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s…", got, want)
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunCompleted {
		t.Errorf("state %s", row.State)
	}
}

func testDoError(t *testing.T, open func(Setup) engine.Engine) {
	broken := errors.New("no idea what happened")
	e := open(Setup{Do: func(ctx context.Context, run string, c engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		if c.Step == "2" && c.Attempt == 1 {
			return nil, broken
		}
		return answer(ctx, run, c, emit)
	}})
	must(t, e.Start(t.Context(), Calls(2, true).Spec("r", "s")))
	for range 2 { // whenever it is asked
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

// clock is a time that stands still until it is waited for.
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
	e := open(Setup{Clock: c, Do: func(_ context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
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

var asking = Script{Stages: [][]Step{{{ID: "1"}}, {{ID: "2", Kind: "wait"}}, {{ID: "3"}}}}

func rest(t *testing.T, e engine.Engine, run string, script Script) {
	t.Helper()
	must(t, e.Start(t.Context(), script.Spec(run, "")))
	_, live, err := follow(t, e, run, 0)
	must(t, err)
	if len(live) == 0 || live[len(live)-1].Kind != engine.EventWaiting {
		t.Fatalf("the run did not come to rest: %s", brief(live))
	}
}

func testWaiting(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	rest(t, e, "r", asking)
	row := rowOf(t, e, "r")
	if row.State != tenon.RunInputRequired || len(row.Waiting) != 1 || row.Waiting[0].Step != "2" || string(row.Waiting[0].Data) != `{"for":"2"}` || row.Waiting[0].Since.IsZero() {
		t.Errorf("row %+v", row)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1") // nothing happens
	must(t, e.Close())

	e = open(Setup{Do: answer})
	_, live, err := follow(t, e, "r", 3)
	must(t, err)
	var waiting []tenon.Waiting
	if len(live) != 1 || json.Unmarshal(live[0].Data, &waiting) != nil || len(waiting) != 1 || !waiting[0].Since.Equal(row.Waiting[0].Since) {
		t.Errorf("a follower is told %s %+v, want what the row says: %+v", brief(live), waiting, row.Waiting)
	}
	ev, err := e.Signal(t.Context(), "r", engine.Signal{ID: "a", Kind: KindGo, Step: "2", Data: json.RawMessage(`{"by":"me"}`)})
	must(t, err)
	if ev.Seq != 4 || ev.Kind != KindGo || ev.Step != "2" || string(ev.Data) != `{"by":"me"}` {
		t.Errorf("event %+v", ev)
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunWorking || len(row.Waiting) != 0 || row.Seq != 4 {
		t.Errorf("row after the signal: %+v", row)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 go:2 started:3#1 result:3#1 done")
}

func testSignalFirst(t *testing.T, open func(Setup) engine.Engine) {
	a, b := open(Setup{Do: answer}), open(Setup{Do: answer})
	rest(t, a, "r", asking)
	var wg sync.WaitGroup
	events := make([]tenon.Event, 8)
	for i := range events {
		e := []engine.Engine{a, b}[i%2]
		wg.Go(func() {
			var err error
			s := engine.Signal{ID: fmt.Sprint("id", i), Kind: KindGo, Step: "2", Data: json.RawMessage(fmt.Sprintf(`{"by":%d}`, i))}
			if events[i], err = e.Signal(t.Context(), "r", s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, ev := range events {
		if ev.Seq != 4 || string(ev.Data) != string(events[0].Data) {
			t.Errorf("two winners: %+v and %+v", ev, events[0])
		}
	}
	again, err := b.Signal(t.Context(), "r", engine.Signal{ID: "id3", Kind: KindGo, Step: "2"})
	must(t, err)
	if again.Seq != 4 {
		t.Errorf("the same id again gives %+v", again)
	}
	late, err := b.Signal(t.Context(), "r", engine.Signal{ID: "late", Kind: KindGo, Step: "2"})
	must(t, err)
	if late.Seq != 4 {
		t.Errorf("a late one gives %+v", late)
	}
	must(t, b.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, b, "r", "run started:1#1 result:1#1 go:2 started:3#1 result:3#1 done")
	again, err = a.Signal(t.Context(), "r", engine.Signal{ID: "id3", Kind: KindGo, Step: "2"})
	must(t, err)
	if again.Seq != 4 {
		t.Errorf("the same id after the end gives %+v", again)
	}
}

// testSignalOther sends signals to a run that another engine works on.
func testSignalOther(t *testing.T, open func(Setup) engine.Engine) {
	release := make(chan struct{})
	owner := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		if c.Step == "1" {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return Result(`1`), nil
	}})
	other := open(Setup{Do: answer})
	s := Script{Stages: [][]Step{{{ID: "1"}, {ID: "2", Kind: "wait"}}, {{ID: "3"}}}}
	must(t, owner.Start(t.Context(), s.Spec("r", "")))
	wantWaiting(t, other, "r")
	ev, err := other.Signal(deadline(t), "r", engine.Signal{ID: "a", Kind: KindGo, Step: "2"})
	must(t, err)
	if ev.Seq != 3 {
		t.Errorf("event %+v", ev)
	}
	must(t, other.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}})) // does nothing
	close(release)
	wantJournal(t, owner, "r", "run started:1#1 go:2 result:1#1 started:3#1 result:3#1 done")
}

// wantWaiting waits until the row says that the run waits for something.
func wantWaiting(t *testing.T, e engine.Engine, run string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(rowOf(t, e, run).Waiting) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("run %s does not wait", run)
		}
	}
}

func testSignalErrors(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	rest(t, e, "r", asking)
	for name, c := range map[string]struct {
		run    string
		signal engine.Signal
		code   tenon.Code
	}{
		"no id":            {"r", engine.Signal{Kind: KindGo, Step: "2"}, tenon.CodeInvalid},
		"no kind":          {"r", engine.Signal{ID: "1", Step: "2"}, tenon.CodeInvalid},
		"no run":           {"none", engine.Signal{ID: "2", Kind: KindGo}, tenon.CodeNotFound},
		"other step":       {"r", engine.Signal{ID: "3", Kind: KindGo, Step: "1"}, tenon.CodeConflict},
		"future step":      {"r", engine.Signal{ID: "4", Kind: KindGo, Step: "3"}, tenon.CodeConflict},
		"unknown kind":     {"r", engine.Signal{ID: "5", Kind: "nonsense", Step: "2"}, tenon.CodeInvalid},
		"nothing to retry": {"r", engine.Signal{ID: "6", Kind: tenon.EventRetry}, tenon.CodeConflict},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			_, err := e.Signal(deadline(t), c.run, c.signal)
			wantCode(t, err, c.code)
		})
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunInputRequired || row.Seq != 3 {
		t.Errorf("row %+v", row)
	}
	_, err := e.Signal(deadline(t), "r", engine.Signal{ID: "7", Kind: KindGo, Step: "2"})
	must(t, err)
	_, err = e.Signal(deadline(t), "r", engine.Signal{ID: "7", Kind: KindNote})
	wantCode(t, err, tenon.CodeConflict)
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 go:2 started:3#1 result:3#1 done")
	_, err = e.Signal(deadline(t), "r", engine.Signal{ID: "8", Kind: KindNote})
	wantCode(t, err, tenon.CodeConflict)
}

// testSignalWorking sends signals without a step, and bad ones, to a run at work.
func testSignalWorking(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: hang(begun)})
	s := Script{Stages: [][]Step{{{ID: "1"}, {ID: "2", Kind: "wait"}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	waitFor(t, begun, "1#1")
	for i := range 3 {
		ev, err := e.Signal(deadline(t), "r", engine.Signal{ID: fmt.Sprint(i), Kind: KindNote})
		must(t, err)
		if want := uint64(3 + i); ev.Seq != want {
			t.Errorf("event %d, want %d", ev.Seq, want)
		}
	}
	_, err := e.Signal(deadline(t), "r", engine.Signal{ID: "bad", Kind: "nonsense"})
	wantCode(t, err, tenon.CodeInvalid)
	must(t, e.Cancel(deadline(t), "r", ""))
	wantJournal(t, e, "r", "run started:1#1 note note note cancel unknown:1#1 done")
}

func testRetryFailed(t *testing.T, open func(Setup) engine.Engine) {
	bad := true
	var mu sync.Mutex
	e := open(Setup{Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		mu.Lock()
		defer mu.Unlock()
		if bad {
			bad = false
			return Result(`"fail"`), nil
		}
		return Result(`"ok"`), nil
	}})
	must(t, e.Start(t.Context(), Calls(2, false).Spec("r", "")))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 done")
	if row := rowOf(t, e, "r"); row.State != tenon.RunFailed || row.Stop != tenon.StopError {
		t.Errorf("row %+v", row)
	}
	ev, err := e.Signal(deadline(t), "r", engine.Signal{ID: "again", Kind: tenon.EventRetry})
	must(t, err)
	if ev.Seq != 5 {
		t.Errorf("event %+v", ev)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 done retry started:2#1 result:2#1 done")
	if row := rowOf(t, e, "r"); row.State != tenon.RunCompleted || row.Stop != tenon.StopEnd {
		t.Errorf("row %+v", row)
	}
}

func testCancelWorking(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- fmt.Sprintf("%s#%d", c.Step, c.Attempt)
		<-ctx.Done()
		if c.Step == "1" {
			return Result(`"cancelled in time"`), nil
		}
		return nil, ctx.Err()
	}})
	s := Script{Stages: [][]Step{{{ID: "1"}}, {{ID: "2", Idempotent: true}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	waitFor(t, begun, "1#1")
	must(t, e.Cancel(t.Context(), "r", "because"))
	wantJournal(t, e, "r", "run started:1#1 cancel result:1#1 done")
	stored, _, err := follow(t, e, "r", 2)
	must(t, err)
	if string(stored[0].Data) != `{"reason":"because"}` {
		t.Errorf("cancel says %s", stored[0].Data)
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunCancelled || row.Stop != tenon.StopCancelled {
		t.Errorf("row %+v", row)
	}
	must(t, e.Cancel(t.Context(), "r", "again")) // it has ended
}

func testCancelOther(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	owner, other := open(Setup{Do: hang(begun)}), open(Setup{Do: answer})
	must(t, owner.Start(t.Context(), Calls(1, true).Spec("r", "")))
	waitFor(t, begun, "1#1")
	must(t, other.Cancel(deadline(t), "r", ""))
	wantJournal(t, other, "r", "run started:1#1 cancel interrupted:1#1 done")
}

func testCancelWaiting(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	rest(t, e, "r", asking)
	must(t, e.Cancel(deadline(t), "r", ""))
	if row := rowOf(t, e, "r"); row.State != tenon.RunCancelled || len(row.Waiting) != 0 {
		t.Errorf("row %+v", row)
	}
	wantJournal(t, e, "r", "run started:1#1 result:1#1 cancel done")
	_, err := e.Signal(deadline(t), "r", engine.Signal{ID: "late", Kind: KindGo, Step: "2"})
	wantCode(t, err, tenon.CodeConflict)
}

// testCancelStubborn cancels a run whose command does not end.
func testCancelStubborn(t *testing.T, open func(Setup) engine.Engine) {
	begun, release := make(chan string, 10), make(chan struct{})
	e := open(Setup{Do: func(_ context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- fmt.Sprintf("%s#%d", c.Step, c.Attempt)
		<-release
		return Result(`"too late"`), nil
	}})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r", "")))
	waitFor(t, begun, "1#1")
	must(t, e.Cancel(deadline(t), "r", ""))
	wantJournal(t, e, "r", "run started:1#1 cancel unknown:1#1 done")
	close(release)
}

func testFollowers(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	const steps = 300
	must(t, e.Start(t.Context(), Calls(steps, true).Spec("r", "")))
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			after := uint64(i * 7)
			ctx := deadline(t)
			next := after + 1
			for ev, err := range e.Events(ctx, "r", after) {
				if err != nil || ev.Seq != next {
					t.Errorf("follower %d: event %d (%v), want %d", i, ev.Seq, err, next)
					return
				}
				next++
				if i == 5 {
					time.Sleep(100 * time.Microsecond) // a slow one
				}
			}
			if want := uint64(2*steps + 2); next != want+1 {
				t.Errorf("follower %d ended before event %d, want %d events", i, next, want)
			}
		})
	}
	wg.Wait()
	n := 0
	for range e.Events(t.Context(), "r", 0) {
		if n++; n == 3 {
			break
		}
	}
	stored, _, err := follow(t, e, "r", 2*steps+2) // nothing after the last
	must(t, err)
	if len(stored) != 0 {
		t.Errorf("events after the last: %s", brief(stored))
	}
}

// testFollowOther follows a run that another engine works on.
func testFollowOther(t *testing.T, open func(Setup) engine.Engine) {
	step := make(chan struct{})
	owner := open(Setup{Do: func(ctx context.Context, _ string, _ engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		select {
		case <-step:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return Result(`1`), nil
	}})
	other := open(Setup{Do: answer})
	s := Script{Stages: [][]Step{{{ID: "1"}}, {{ID: "2"}}, {{ID: "3", Kind: "wait"}}}}
	must(t, owner.Start(t.Context(), s.Spec("r", "")))
	var got []string
	for ev, err := range other.Events(deadline(t), "r", 0) {
		must(t, err)
		got = append(got, ev.Kind)
		if ev.Kind == tenon.EventStarted {
			step <- struct{}{}
		}
	}
	if want := []string{"run", "started", "result", "started", "result", "waiting"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func testLive(t *testing.T, open func(Setup) engine.Engine) {
	said, release := make(chan string, 1), make(chan struct{})
	e := open(Setup{Do: func(_ context.Context, _ string, c engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		say := func(kind, d string) { emit(tenon.Event{Kind: kind, Data: json.RawMessage(d)}) }
		if c.Step == "1" {
			say(engine.LiveDelta, `{"kind":"text","text":"void"}`)
			say(engine.LiveReset, `{}`)
			say(engine.LiveDelta, `{"kind":"thinking","text":"hm"}`)
			say(engine.LiveDelta, `{"kind":"text","text":"Hel"}`)
			say(engine.LiveDelta, `{"kind":"text","text":"lo"}`)
			said <- "all"
			<-release
			say(engine.LiveDelta, `{"kind":"text","text":" world"}`)
		}
		return Result(`"Hello world"`), nil
	}})
	must(t, e.Start(t.Context(), Calls(2, true).Spec("r", "")))
	waitFor(t, said, "all")
	var once sync.Once
	var got []string
	for ev, err := range e.Events(deadline(t), "r", 0) {
		must(t, err)
		if ev.Kind != engine.LiveDelta {
			got = append(got, ev.Kind)
			continue
		}
		var d engine.Delta
		must(t, json.Unmarshal(ev.Data, &d))
		got = append(got, d.Kind+"="+d.Text)
		if ev.Seq != 0 || ev.Step != "1" || ev.Attempt != 1 {
			t.Errorf("a live event is %+v", ev)
		}
		if d.Text == "Hello" {
			once.Do(func() { close(release) })
		}
	}
	want := []string{"run", "started", "thinking=hm", "text=Hello", "text= world", "result", "started", "result", "done"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	_, live, err := follow(t, e, "r", 0)
	must(t, err)
	if len(live) > 0 {
		t.Errorf("live events after the end: %s", brief(live))
	}
}

func testClose(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- fmt.Sprintf("%s#%d", c.Step, c.Attempt)
		<-ctx.Done()
		if c.Step == "1" {
			return Result(`"in time"`), nil
		}
		return nil, ctx.Err()
	}})
	s := Script{Stages: [][]Step{{{ID: "1"}, {ID: "2"}}}}
	must(t, e.Start(t.Context(), s.Spec("r", "")))
	<-begun
	<-begun
	ended := make(chan error, 1)
	go func() {
		for _, err := range e.Events(t.Context(), "r", 0) {
			if err != nil {
				ended <- err
			}
		}
		close(ended)
	}()
	time.Sleep(time.Millisecond)
	must(t, e.Close())
	must(t, e.Close())
	wantCode(t, <-ended, tenon.CodeCancelled)
	wantCode(t, e.Start(t.Context(), s.Spec("r2", "")), tenon.CodeCancelled)
	e = open(Setup{Do: answer})
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 started:2#1 result:1#1 unknown:2#1 done")
}

func testList(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	dead := open(Setup{Do: hang(begun)})
	must(t, dead.Start(t.Context(), Calls(1, true).Spec("run_1", "a")))
	waitFor(t, begun, "1#1")
	must(t, dead.Close())
	e, other := open(Setup{Do: hang(begun)}), open(Setup{Do: answer})
	must(t, e.Start(t.Context(), Calls(1, true).Spec("run_2", "b")))
	waitFor(t, begun, "1#1")
	rest(t, other, "run_3", asking)
	must(t, other.Start(t.Context(), Calls(1, true).Spec("run_4", "b4")))
	_, _, err := follow(t, other, "run_4", 0)
	must(t, err)
	for name, c := range map[string]struct {
		f    engine.Filter
		want string
	}{
		"all":       {engine.Filter{}, "run_4 run_3 run_2 run_1"},
		"resumable": {engine.Filter{Resumable: true}, "run_1"},
		"working":   {engine.Filter{State: tenon.RunWorking}, "run_2 run_1"},
		"session":   {engine.Filter{Session: "b"}, "run_2"},
		"page":      {engine.Filter{Before: "run_4", Limit: 2}, "run_3 run_2"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range []engine.Engine{e, other} {
				rows, err := e.List(t.Context(), c.f)
				must(t, err)
				var ids []string
				for _, r := range rows {
					ids = append(ids, r.ID)
				}
				if got := strings.Join(ids, " "); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}
		})
	}
}

// testOneOwner has many engines start the same run: one works on it.
func testOneOwner(t *testing.T, open func(Setup) engine.Engine) {
	var mu sync.Mutex
	ran := map[string]int{}
	do := func(ctx context.Context, run string, c engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		mu.Lock()
		ran[c.Step]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		return answer(ctx, run, c, emit)
	}
	var wg sync.WaitGroup
	engines := []engine.Engine{open(Setup{Do: do}), open(Setup{Do: do}), open(Setup{Do: do})}
	for i := range 12 {
		wg.Go(func() {
			if err := engines[i%3].Start(t.Context(), Calls(5, false).Spec("r", "s")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range engines {
		wantJournal(t, e, "r", "run started:1#1 result:1#1 started:2#1 result:2#1 started:3#1 result:3#1 started:4#1 result:4#1 started:5#1 result:5#1 done")
	}
	for step, n := range ran {
		if n != 1 {
			t.Errorf("step %s ran %d times", step, n)
		}
	}
}

func testManyRuns(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: answer})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			id := fmt.Sprintf("r%03d", i)
			if err := e.Start(t.Context(), Calls(10, i%2 == 0).Spec(id, id)); err != nil {
				t.Error(err)
				return
			}
			n := 0
			for _, err := range e.Events(deadline(t), id, 0) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if n != 22 {
				t.Errorf("run %s has %d events, want 22", id, n)
			}
		})
	}
	wg.Wait()
}

// testStuck starts a run whose core names nothing to do.
func testStuck(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		return []tenon.Event{{Kind: tenon.EventStarted}}, nil // nonsense: it leaves the step running
	}})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r", "")))
	_, _, err := follow(t, e, "r", 0)
	wantCode(t, err, tenon.CodeInternal)
}

func testNoEvent(t *testing.T, open func(Setup) engine.Engine) {
	e := open(Setup{Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
		return nil, nil
	}})
	must(t, e.Start(t.Context(), Calls(1, false).Spec("r", "")))
	_, _, err := follow(t, e, "r", 0)
	wantCode(t, err, tenon.CodeInternal)
}
