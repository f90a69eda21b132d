package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// asks is a Do whose steps ask a question and return the answer.
func asks(ctx context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	e, err := c.Journal.Ask(ctx, tenon.Event{Step: c.Step + "/q", Data: json.RawMessage(`"who?"`)})
	if err != nil {
		return nil, err
	}
	return Result(fmt.Sprintf("%q", e.Kind+" "+string(e.Data))), nil
}

// testQuestion asks during a step. The row lists the wait while the run works. Eight senders in two processes
// answer, and each gets the first answer.
func testQuestion(t *testing.T, open func(Setup) engine.Engine) {
	owner, other := open(Setup{Do: asks}), open(Setup{Do: answer})
	must(t, owner.Start(t.Context(), Calls(1, false).Spec("r", "")))
	wantWaiting(t, other, "r")
	if row := rowOf(t, other, "r"); row.State != tenon.RunWorking || row.Waiting[0].Step != "1/q" ||
		string(row.Waiting[0].Data) != `{"for":"1/q"}` {
		t.Errorf("row %+v", row)
	}
	var wg sync.WaitGroup
	events := make([]tenon.Event, 8)
	for i := range events {
		wg.Go(func() {
			var err error
			events[i], err = []engine.Engine{owner, other}[i%2].Signal(deadline(t), "r",
				engine.Signal{ID: fmt.Sprint("id", i), Kind: KindGo, Step: "1/q", Data: json.RawMessage(fmt.Sprint(i))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range events {
		if e.Seq != 4 || string(e.Data) != string(events[0].Data) {
			t.Errorf("two winners: %+v and %+v", e, events[0])
		}
	}
	stored, _, err := follow(t, owner, "r", 0)
	must(t, err)
	if got, want := brief(stored), "run started:1#1 question:1/q#1 go:1/q result:1#1 done"; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if got, want := string(stored[4].Data), fmt.Sprintf("%q", "go "+string(events[0].Data)); got != want {
		t.Errorf("the step got %s, want %s", got, want)
	}
	if row := rowOf(t, other, "r"); len(row.Waiting) != 0 {
		t.Errorf("row %+v", row)
	}
}

// testQuestionEnds ends questions without an answer: withdrawn by the step, left open by the step, and cut
// off by the end of the run. Events recorded after the end of the step are refused.
func testQuestionEnds(t *testing.T, open func(Setup) engine.Engine) {
	late := make(chan error, 1)
	taken := errors.New("taken back")
	e := open(Setup{Do: func(ctx context.Context, run string, c engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
		q := tenon.Event{Step: c.Step + "/q"}
		switch run {
		case "back":
			short, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(10*time.Millisecond, func() { cancel(taken) })
			if _, err := c.Journal.Ask(short, q); !errors.Is(err, taken) {
				t.Errorf("a withdrawn question: %v", err)
			}
		case "left":
			q.Kind = tenon.EventQuestion
			must(t, c.Journal.Record(ctx, q))
			defer func() {
				go func() {
					for {
						if err := c.Journal.Record(context.Background(),
							tenon.Event{Step: c.Step + "/late", Kind: KindNote}); err != nil {
							late <- err
							return
						}
					}
				}()
			}()
		case "stray":
			if err := c.Journal.Record(ctx, tenon.Event{Step: "2",
				Kind: KindNote}); tenon.ErrorCode(err) != tenon.CodeInternal {
				t.Errorf("an event of another step: %v", err)
			}
		default:
			return asks(ctx, run, c, emit)
		}
		return Result(`"ok"`), nil
	}})
	for run, want := range map[string]string{
		"back":  "run started:1#1 question:1/q#1 expired:1/q#1 result:1#1 done",
		"left":  "run started:1#1 question:1/q#1 expired:1/q result:1#1 done",
		"stray": "run started:1#1 result:1#1 done",
	} {
		must(t, e.Start(t.Context(), Calls(1, false).Spec(run, "")))
		if run != "left" {
			wantJournal(t, e, run, want)
			continue
		}
		if tenon.ErrorCode(<-late) == "" {
			t.Error("an event after the end of its step was accepted")
		}
	}
	must(t, e.Start(t.Context(), Calls(1, false).Spec("cancel", "")))
	wantWaiting(t, e, "cancel")
	must(t, e.Cancel(deadline(t), "cancel", ""))
	stored, _, err := follow(t, e, "cancel", 0)
	must(t, err)
	if got, want := brief(stored), "run started:1#1 question:1/q#1 cancel expired:1/q#1 unknown:1#1 done"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = e.Signal(deadline(t), "cancel", engine.Signal{ID: "x", Kind: KindGo, Step: "1/q"})
	wantCode(t, err, tenon.CodeConflict)
}

// testQuestionLost closes the process of a question.
func testQuestionLost(t *testing.T, open func(Setup) engine.Engine) {
	for _, safe := range []bool{false, true} {
		run := fmt.Sprint("r", safe)
		e := open(Setup{Do: asks})
		must(t, e.Start(t.Context(), Calls(1, safe).Spec(run, "")))
		wantWaiting(t, e, run)
		must(t, e.Close())
		e = open(Setup{Do: answer})
		ev, err := e.Signal(deadline(t), run, engine.Signal{ID: "late" + run, Kind: KindGo, Step: "1/q"})
		if err == nil && ev.Kind != tenon.EventExpired || err != nil && tenon.ErrorCode(err) != tenon.CodeConflict {
			t.Errorf("a late answer got %+v, %v", ev, err)
		}
		must(t, e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: run}}))
		stored, _, err := follow(t, e, run, 0)
		must(t, err)
		kinds := map[string]int{}
		for _, ev := range stored {
			kinds[ev.Kind]++
		}
		if kinds[tenon.EventExpired] != 1 || safe && kinds[KindResult] != 1 || !safe && kinds[tenon.EventUnknown] != 1 {
			t.Errorf("safe %v: %s", safe, brief(stored))
		}
	}
}

// Rested starts a run that waits for a decision, and returns when it is at rest.
func Rested(t *testing.T, e engine.Engine, run string) {
	t.Helper()
	script := Script{Stages: [][]Step{{{ID: "1", Kind: "wait"}}, {{ID: "2"}}}}
	if err := e.Start(t.Context(), script.Spec(run, "")); err != nil {
		t.Fatal(err)
	}
	for _, err := range e.Events(t.Context(), run, 0) { // ends when the run is at rest
		if err != nil {
			t.Fatal(err)
		}
	}
}
