package local

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store/sqlite"
)

// TestStartBesideACancelThatFails starts a run while another caller takes it to cancel it and fails. Start
// must return that error, because no driver works on the run.
func TestStartBesideACancelThatFails(t *testing.T) {
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	begun := make(chan struct{})
	first, err := New(Config{Store: st, NewCore: enginetest.NewCore, Grace: time.Millisecond,
		Do: func(ctx context.Context, _ string, _ engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	if err != nil {
		t.Fatal(err)
	}
	spec := enginetest.Calls(1, true).Spec("run_a", "ses_a")
	if err := first.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	<-begun
	_ = first.Close() // leaves the run in state working
	taken, fail := make(chan struct{}, 2), make(chan struct{})
	broken := tenon.Errorf(tenon.CodeStore, "a blob is missing")
	e, err := New(Config{Store: st, Do: func(context.Context, string, engine.Attempt,
		func(tenon.Event)) ([]tenon.Event, error) {
		return nil, broken
	},
		NewCore: func(context.Context, engine.Spec) (tenon.Core, error) {
			taken <- struct{}{}
			<-fail
			return nil, broken
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	cancelled, started := make(chan error, 1), make(chan error, 1)
	go func() { cancelled <- e.Cancel(t.Context(), "run_a", "enough") }()
	<-taken
	go func() { started <- e.Start(t.Context(), spec) }()
	time.Sleep(20 * time.Millisecond) // if Start comes too late, it fails on its own
	close(fail)
	if err := <-cancelled; tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("the cancel: %v", err)
	}
	if err := <-started; tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("the start: %v", err)
	}
}
