package local

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
)

// heldProc is a process that can tell who holds a lease.
type heldProc struct{ *proc }

func (heldProc) Holder(string) int { return 4711 }

// TestOwnerNamed cancels a run that another process owns, which does not read its signals. The error must name that
// process.
func TestOwnerNamed(t *testing.T) {
	t.Run("RP-27", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &fullWorld{t: t, disk: newDisk(), effects: map[string]int{}}
			_, e := w.open(func(context.Context, *fullProc, string) {})
			spec := enginetest.Script{Stages: [][]enginetest.Step{{{ID: "a", Kind: "wait"}}}}.Spec(theRun, "ses_1")
			if err := e.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			_, ok, err := (&proc{disk: w.disk}).Acquire(theRun) // as if by a process that was stopped
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			var log bytes.Buffer
			caller, err := New(Config{Store: heldProc{&proc{disk: w.disk}}, NewCore: enginetest.NewCore,
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
					return nil, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer caller.Close()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute) // of the fake clock
			defer stop()
			if err := caller.Cancel(ctx, theRun, "enough"); tenon.ErrorCode(err) != tenon.CodeCancelled {
				t.Errorf("nobody answers: %v", err)
			}
			if n := strings.Count(log.String(), "process 4711 works on run "+theRun); n != 1 {
				t.Errorf("the process is named %d times:\n%s", n, &log)
			}
		})
	})
}

// slowRelease is a process whose leases are released when gate is closed.
type slowRelease struct {
	*proc
	gate     chan struct{}
	acquired atomic.Int32
}

func (p *slowRelease) Acquire(run string) (release func(), ok bool, err error) {
	quick, ok, err := p.proc.Acquire(run)
	if ok {
		p.acquired.Add(1)
	}
	return func() {
		quick()
		<-p.gate
	}, ok, err
}

// TestStart_leaving starts a run while its driver releases the lease. The run gets another driver.
func TestStart_leaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slowRelease{proc: &proc{disk: newDisk()}, gate: make(chan struct{})}
		e, err := New(Config{Store: st, NewCore: enginetest.NewCore,
			Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
				return nil, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		spec := enginetest.Script{Stages: [][]enginetest.Step{{{ID: "a", Kind: "wait"}}}}.Spec(theRun, "ses_1")
		if err := e.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the run waits, and its driver is leaving
		done := make(chan error, 1)
		go func() { done <- e.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: theRun}}) }()
		synctest.Wait()
		close(st.gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := st.acquired.Load(); n != 2 {
			t.Errorf("the run had %d drivers, want 2", n)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
