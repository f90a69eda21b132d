package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

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
	if row.State != tenon.RunInputRequired || len(row.Waiting) != 1 || row.Waiting[0].Step != "2" ||
		string(row.Waiting[0].Data) != `{"for":"2"}` || row.Waiting[0].Since.IsZero() {
		t.Errorf("row %+v", row)
	}
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1") // Start does nothing
	must(t, e.Close())

	e = open(Setup{Do: answer})
	_, live, err := follow(t, e, "r", 3)
	must(t, err)
	var waiting []tenon.Waiting
	if len(live) != 1 || json.Unmarshal(live[0].Data, &waiting) != nil || len(waiting) != 1 ||
		!waiting[0].Since.Equal(row.Waiting[0].Since) {
		t.Errorf("a follower got %s %+v, want the waits of the row: %+v", brief(live), waiting, row.Waiting)
	}
	ev, err := e.Signal(t.Context(), "r", engine.Signal{ID: "a", Kind: KindGo, Step: "2",
		Data: json.RawMessage(`{"by":"me"}`)})
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

// testExpires lets waits expire: in a run at rest, observed by a late signal and by a start, and in a working
// run.
func testExpires(t *testing.T, open func(Setup) engine.Engine) {
	clock := &handClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	script := Script{Stages: [][]Step{{{ID: "1"}}, {{ID: "2", Kind: tenon.CommandWait, After: time.Hour}}, {{ID: "3"}}}}
	e := open(Setup{Do: answer, Clock: clock})
	rest(t, e, "late", script)
	rest(t, e, "start", script)
	rest(t, e, "soon", script)
	row := rowOf(t, e, "late")
	if len(row.Waiting) != 1 || !row.Waiting[0].Expires.Equal(row.Waiting[0].Since.Add(time.Hour)) {
		t.Errorf("row %+v", row)
	}
	signal := func(run string) tenon.Event {
		ev, err := e.Signal(t.Context(), run, engine.Signal{ID: "sig-" + run, Kind: KindGo, Step: "2"})
		must(t, err)
		return ev
	}
	clock.add(time.Hour - time.Second)
	if ev := signal("soon"); ev.Kind != KindGo {
		t.Errorf("a signal within the hour: %+v", ev)
	}
	clock.add(time.Second)
	if ev := signal("late"); ev.Kind != tenon.EventExpired || ev.Step != "2" {
		t.Errorf("a signal after the hour got %+v", ev)
	}
	for _, run := range []string{"late", "start"} {
		must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: run}}))
		wantJournal(t, e, run, "run started:1#1 result:1#1 expired:2 started:3#1 result:3#1 done")
	}

	begun := make(chan string, 1)
	busy := open(Setup{Do: hang(begun), Clock: clock})
	step := Step{ID: "2", Kind: tenon.CommandWait, After: time.Hour}
	must(t, busy.Start(t.Context(), Script{Stages: [][]Step{{{ID: "1"}, step}}}.Spec("busy", "")))
	<-begun
	wantWaiting(t, busy, "busy")
	clock.add(time.Hour)
	for ev, err := range busy.Events(deadline(t), "busy", 2) {
		must(t, err)
		if ev.Kind == tenon.EventExpired {
			break
		}
	}
}

// handClock is a clock that a test advances.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	bells []bell
}

type bell struct {
	at time.Time
	c  chan time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Elapsed() time.Duration { return c.Now().Sub(time.Time{}.AddDate(2025, 0, 0)) }

func (c *handClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := bell{c.now.Add(d), make(chan time.Time, 1)}
	c.bells = append(c.bells, b)
	if d <= 0 {
		b.c <- c.now
	}
	return b.c
}

func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for _, b := range c.bells {
		if !b.at.After(c.now) {
			select {
			case b.c <- c.now:
			default:
			}
		}
	}
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
			s := engine.Signal{ID: fmt.Sprint("id", i), Kind: KindGo, Step: "2",
				Data: json.RawMessage(fmt.Sprintf(`{"by":%d}`, i))}
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
		t.Errorf("the same id again: %+v", again)
	}
	late, err := b.Signal(t.Context(), "r", engine.Signal{ID: "late", Kind: KindGo, Step: "2"})
	must(t, err)
	if late.Seq != 4 {
		t.Errorf("a late signal: %+v", late)
	}
	must(t, b.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, b, "r", "run started:1#1 result:1#1 go:2 started:3#1 result:3#1 done")
	again, err = a.Signal(t.Context(), "r", engine.Signal{ID: "id3", Kind: KindGo, Step: "2"})
	must(t, err)
	if again.Seq != 4 {
		t.Errorf("the same id after the end: %+v", again)
	}
}

// testSignalOther sends signals to a run that another engine owns.
func testSignalOther(t *testing.T, open func(Setup) engine.Engine) {
	release := make(chan struct{})
	owner := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
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

// wantWaiting waits until the row of the run lists a wait.
func wantWaiting(t *testing.T, e engine.Engine, run string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(rowOf(t, e, run).Waiting) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("run %s is not waiting", run)
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
	// A refused signal is refused again.
	_, err = e.Signal(deadline(t), "r", engine.Signal{ID: "5", Kind: "nonsense", Step: "2"})
	wantCode(t, err, tenon.CodeConflict)
	must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: "r"}}))
	wantJournal(t, e, "r", "run started:1#1 result:1#1 go:2 started:3#1 result:3#1 done")
	_, err = e.Signal(deadline(t), "r", engine.Signal{ID: "8", Kind: KindNote})
	wantCode(t, err, tenon.CodeConflict)
}

// testSignalWorking sends valid and invalid signals without a step to a working run.
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
	_, err = e.Signal(deadline(t), "r", engine.Signal{ID: "bad", Kind: "nonsense"})
	wantCode(t, err, tenon.CodeConflict) // sent again
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
