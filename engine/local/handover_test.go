package local

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// TestHandOver starts a run in an engine that hands over to another one on the same store. The run is stored, begins
// in the other engine only, and can be followed through the old one.
func TestHandOver(t *testing.T) {
	ctx := t.Context()
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	open := func(calls *int) *Engine {
		e, err := New(Config{Store: st, NewCore: enginetest.NewCore,
			Do: func(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
				*calls++
				return enginetest.Result("1"), nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var before, after int
	old, next := open(&before), open(&after)
	defer func() {
		for _, err := range []error{next.Close(), st.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	}()
	old.HandOver(ctx)
	spec := enginetest.Calls(1, true).Spec("r", "s")
	if err := old.Start(ctx, spec); err != nil {
		t.Fatal(err)
	}
	old.Drain(ctx)
	row, err := st.Run(store.OwnOnly(ctx), "r")
	if err != nil || row.State != tenon.RunWorking {
		t.Fatalf("the run is %q, %v", row.State, err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range old.Events(ctx, "r", 0) {
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	if err := next.Start(ctx, engine.Spec{Run: tenon.Run{ID: "r"}}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("a follower at the old engine: %v", err)
	}
	if row, err = st.Run(ctx, "r"); err != nil || row.State != tenon.RunCompleted || before != 0 || after != 1 {
		t.Errorf("the run is %s, %v; %d calls by the old engine, %d by the other", row.State, err, before, after)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	if err := old.Start(ctx, enginetest.Calls(1, true).Spec("r2", "s2")); tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Errorf("a start after the end: %v", err)
	}
}
