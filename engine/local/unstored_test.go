package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store"
)

// fullProc is a process whose writes to a journal can fail. If late is set, the events are stored although the write
// fails.
type fullProc struct {
	*proc
	full, late atomic.Bool
}

func (p *fullProc) Append(ctx context.Context, a store.Append) error {
	if p.late.Load() {
		if err := p.proc.Append(ctx, a); err != nil {
			return err
		}
	}
	if p.full.Load() {
		return tenon.Errorf(tenon.CodeStore, "run %s: the disk is full", a.Run)
	}
	if p.late.Load() {
		return nil
	}
	return p.proc.Append(ctx, a)
}

// fullWorld is a run whose steps fill the disk, and the number of effects of each step.
type fullWorld struct {
	t       *testing.T
	disk    *disk
	mu      sync.Mutex
	effects map[string]int
}

func (w *fullWorld) open(do func(ctx context.Context, p *fullProc, step string)) (*fullProc, *Engine) {
	p := &fullProc{proc: &proc{disk: w.disk}}
	e, err := New(Config{Store: p, NewCore: enginetest.NewCore,
		Do: func(ctx context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
			w.mu.Lock()
			w.effects[a.Step]++
			w.mu.Unlock()
			do(ctx, p, a.Step)
			return []tenon.Event{{Step: a.Step, Kind: enginetest.KindResult, Data: []byte(`"` + a.Step + `"`)}}, nil
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = e.Close() })
	return p, e
}

// follow drives the run and returns the error that stopped it.
func (w *fullWorld) follow(e *Engine) (err error) {
	spec := enginetest.Script{Stages: [][]enginetest.Step{{{ID: "a"}, {ID: "b"}}, {{ID: "c"}}}}.Spec(theRun, "ses_1")
	if err := e.Start(w.t.Context(), spec); err != nil {
		return err
	}
	for _, err = range e.Events(w.t.Context(), theRun, 0) {
	}
	return err
}

// check compares the ends of the steps with the expected ones. No step has two, and no effect was repeated.
func (w *fullWorld) check(want ...string) {
	w.t.Helper()
	var ends []string
	for _, e := range w.disk.events[theRun] {
		if e.Kind == enginetest.KindResult || e.Kind == tenon.EventUnknown || e.Kind == tenon.EventInterrupted {
			ends = append(ends, e.Step+" "+e.Kind)
		}
	}
	slices.Sort(ends)
	if !slices.Equal(ends, want) {
		w.t.Errorf("the steps end with %q, want %q", ends, want)
	}
	for step, n := range w.effects {
		if n != 1 {
			w.t.Errorf("step %s had %d effects", step, n)
		}
	}
	if last := w.disk.events[theRun]; last[len(last)-1].Kind != tenon.EventDone {
		w.t.Error("the run has not ended")
	}
}

// TestUnstored fills the disk while two calls are at work. One ends at once; the other only when the run has stopped.
func TestUnstored(t *testing.T) {
	kept := []string{"a result", "b result", "c result"}
	for _, tt := range []struct {
		name string
		want []string
		then func(w *fullWorld, p *fullProc, e *Engine)
	}{
		{"RP-27_kept", kept, func(*fullWorld, *fullProc, *Engine) {}},
		{"RP-27_stored_late", kept, func(*fullWorld, *fullProc, *Engine) {}},
		{"RP-27_still_full", kept, func(w *fullWorld, p *fullProc, e *Engine) {
			p.full.Store(true)
			for range 3 {
				if err := w.follow(e); tenon.ErrorCode(err) != tenon.CodeStore {
					t.Errorf("the disk is still full: %v", err)
				}
			}
			p.full.Store(false)
		}},
		{"RP-27_elsewhere", []string{"a unknown", "b unknown", "c result"}, func(w *fullWorld, _ *fullProc, e *Engine) {
			_, other := w.open(func(context.Context, *fullProc, string) {})
			if err := w.follow(other); err != nil {
				t.Error(err)
			}
		}},
		{"RP-27_lost", []string{"a unknown", "b unknown", "c result"}, func(w *fullWorld, _ *fullProc, e *Engine) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.unstored.forget(theRun) // as if too much were kept
		}},
		{"RP-27_signal", kept, func(w *fullWorld, p *fullProc, e *Engine) {
			// A driver that only handles a signal first stores the kept results; the run then continues.
			s := engine.Signal{ID: "sig", Kind: enginetest.KindNote}
			if _, err := e.Signal(t.Context(), theRun, s); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &fullWorld{t: t, disk: newDisk(), effects: map[string]int{}}
			both := make(chan struct{})
			p, e := w.open(func(ctx context.Context, p *fullProc, step string) {
				switch step {
				case "a":
					<-both
					p.late.Store(tt.name == "RP-27_stored_late")
					p.full.Store(true)
				case "b":
					close(both)
					<-ctx.Done()
				}
			})
			if err := w.follow(e); tenon.ErrorCode(err) != tenon.CodeStore {
				t.Fatalf("with a full disk: %v", err)
			}
			p.late.Store(false)
			p.full.Store(false)
			tt.then(w, p, e)
			if err := w.follow(e); err != nil {
				t.Fatal(err)
			}
			w.check(tt.want...)
			for _, ev := range w.disk.events[theRun] {
				if ev.Kind == tenon.EventUnknown &&
					strings.Contains(string(ev.Data), "could not be stored") != (tt.name == "RP-27_lost") {
					t.Errorf("the reason of step %s: %s", ev.Step, ev.Data)
				}
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if n := len(e.unstored.runs); n > 0 && tt.name != "RP-27_elsewhere" {
				t.Errorf("%d runs are still kept", n)
			}
		})
	}
}

// TestUnstoredBounds checks that the results in memory are bounded in runs and bytes, and that those of the oldest runs
// are dropped first.
func TestUnstoredBounds(t *testing.T) {
	sized := func(n int) []unstored { return []unstored{{events: []tenon.Event{{Data: make([]byte, n)}}}} }
	var u unstoredRuns
	u.put("large", time.Time{}, sized(maxUnstoredBytes+1))
	for i := range maxUnstoredRuns + 1 {
		u.put(fmt.Sprint(i), time.Time{}, sized(1))
	}
	if _, there := u.runs["0"]; there || len(u.runs) != maxUnstoredRuns || u.size != maxUnstoredRuns {
		t.Errorf("RP-27: %d runs with %d bytes, the oldest is there: %t", len(u.runs), u.size, there)
	}
	u.put("last", time.Time{}, sized(maxUnstoredBytes))
	if len(u.runs) != 1 || len(u.order) != 1 || u.size != maxUnstoredBytes {
		t.Errorf("RP-27: %d runs with %d bytes", len(u.runs), u.size)
	}
	u.put("last", time.Time{}, nil)
	if len(u.runs) != 0 || len(u.order) != 0 || u.size != 0 {
		t.Errorf("RP-27: %d runs with %d bytes are left", len(u.runs), u.size)
	}
}
