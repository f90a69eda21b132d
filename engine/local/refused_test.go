package local

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// slowInbox is a store that delays the senders of a signal until the run's owner has handled it.
type slowInbox struct{ *sqlite.Store }

func (s slowInbox) PutSignal(ctx context.Context, sig store.Signal) (store.Signal, error) {
	out, err := s.Store.PutSignal(ctx, sig)
	for err == nil && ctx.Err() == nil {
		var now store.Signal
		if now, err = s.Store.Signal(ctx, sig.ID); err == nil && now.Seq > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return out, err
}

// TestRefusedBeforeItsSenderLooks sends a signal that the core refuses. The driver handles it before its sender reads
// the store. The sender must get the refusal nevertheless.
func TestRefusedBeforeItsSenderLooks(t *testing.T) {
	t.Run("signal_refused_first", func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		begun := make(chan struct{})
		e, err := New(Config{Store: slowInbox{st}, NewCore: enginetest.NewCore, Grace: time.Millisecond,
			Do: func(ctx context.Context, _ string, _ engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close() }() // it has a run in flight
		if err := e.Start(t.Context(), enginetest.Calls(1, true).Spec("run_a", "ses_a")); err != nil {
			t.Fatal(err)
		}
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = e.Signal(ctx, "run_a", engine.Signal{ID: "bad", Kind: "nonsense"})
		if tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Fatalf("%v", err)
		}
	})
}
