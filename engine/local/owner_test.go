package local

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
)

// heldProc is a process that knows who has leases.
type heldProc struct{ *proc }

func (heldProc) Holder(string) int { return 4711 }

// TestOwnerNamed cancels a run on which a process works that takes no signals. The caller learns the id of that process.
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
			_, ok, err := (&proc{disk: w.disk}).Acquire(theRun) // by a process that has stopped
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
