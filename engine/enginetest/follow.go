package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

func testCancelWorking(t *testing.T, open func(Setup) engine.Engine) {
	begun := make(chan string, 10)
	e := open(Setup{Do: func(ctx context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
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
		t.Errorf("the cancel event has data %s", stored[0].Data)
	}
	if row := rowOf(t, e, "r"); row.State != tenon.RunCancelled || row.Stop != tenon.StopCancelled {
		t.Errorf("row %+v", row)
	}
	must(t, e.Cancel(t.Context(), "r", "again")) // the run has ended
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

// testCancelTogether cancels each run concurrently. Late callers must return too.
func testCancelTogether(t *testing.T, open func(Setup) engine.Engine) {
	engines := []engine.Engine{open(Setup{Do: answer}), open(Setup{Do: answer})}
	for i := range 10 {
		run := fmt.Sprint("r", i)
		rest(t, engines[0], run, asking)
		var wg sync.WaitGroup
		for j := range 8 {
			wg.Go(func() {
				if err := engines[j%2].Cancel(deadline(t), run, ""); err != nil {
					t.Errorf("run %s: %v", run, err)
				}
			})
		}
		wg.Wait()
		if row := rowOf(t, engines[0], run); row.State != tenon.RunCancelled {
			t.Errorf("row %+v", row)
		}
	}
}

// testCancelStubborn cancels a run whose command ignores its context.
func testCancelStubborn(t *testing.T, open func(Setup) engine.Engine) {
	begun, release := make(chan string, 10), make(chan struct{})
	e := open(Setup{Do: func(_ context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
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
				if i == 5 { // a slow follower
					time.Sleep(100 * time.Microsecond)
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
	for _, after := range []uint64{2*steps + 2, math.MaxInt64, math.MaxUint64} { // at or after the last event
		stored, _, err := follow(t, e, "r", after)
		must(t, err)
		if len(stored) != 0 {
			t.Errorf("events after the last: %s", brief(stored))
		}
	}
}

// testFollowOther follows a run that another engine owns.
func testFollowOther(t *testing.T, open func(Setup) engine.Engine) {
	step := make(chan struct{})
	owner := open(Setup{Do: func(ctx context.Context, _ string, _ engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
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
	e := open(Setup{Do: func(_ context.Context, _ string, c engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
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
			t.Errorf("wrong live event %+v", ev)
		}
		if d.Text == "Hello" {
			once.Do(func() { close(release) })
		}
	}
	want := []string{"run", "started", "thinking=hm", "text=Hello", "text= world", "result", "started",
		"result", "done"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	_, live, err := follow(t, e, "r", 0)
	must(t, err)
	if len(live) > 0 {
		t.Errorf("live events after the end: %s", brief(live))
	}
}
