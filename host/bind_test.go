package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// TestBindContext checks that a run that is bound to a context is cancelled with the context, and that the journal
// contains the reason.
func TestBindContext(t *testing.T) {
	gone := errors.New("the client is gone")
	for _, tt := range []struct {
		name string
		ask  func(ctx context.Context, h *host.Host, q host.Question) (run string, err error)
	}{
		{"Ask", func(ctx context.Context, h *host.Host, q host.Question) (string, error) {
			a, err := host.Ask(ctx, h, q)
			return a.Run.ID, err
		}},
		{"Stream", func(ctx context.Context, h *host.Host, q host.Question) (run string, err error) {
			for e, serr := range h.Stream(ctx, q) {
				if serr != nil {
					return run, serr
				}
				run = e.Run
				if d, ok := e.Value().(*view.Done); ok && d.State == tenon.RunCancelled {
					err = tenon.Errorf(tenon.CodeCancelled, "done")
				}
			}
			return run, err
		}},
		{"Start", func(ctx context.Context, h *host.Host, q host.Question) (string, error) {
			s, err := h.Start(ctx, q)
			if err != nil {
				return "", err
			}
			for e, err := range h.Runs().Events(context.WithoutCancel(ctx), s.ID, 0) {
				if err != nil {
					return s.ID, err
				}
				if e.Kind == tenon.EventDone {
					return s.ID, tenon.Errorf(tenon.CodeCancelled, "done")
				}
			}
			return s.ID, nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			called := host.NewFunction("x", "Waits", func(ctx context.Context, _ struct{}) (string, error) {
				cancel(gone)
				<-ctx.Done()
				return "", ctx.Err()
			}).ReadOnly()
			h := openModel(t, t.TempDir(), callsX(), nil)
			run, err := tt.ask(ctx, h, host.Question{Text: "go", BindContext: true, Functions: []host.Function{called}})
			if tenon.ErrorCode(err) != tenon.CodeCancelled {
				t.Errorf("error %v", err)
			}
			row, err := h.Runs().Get(t.Context(), run)
			if err != nil || row.State != tenon.RunCancelled {
				t.Errorf("%+v, %v", row, err)
			}
			events, err := h.Runs().Open(run).Journal(t.Context(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			for _, e := range events {
				if e.Kind == tenon.EventCancel {
					reasons = append(reasons, view.As[tenon.CancelData](e).Reason)
				}
			}
			if got, want := strings.Join(reasons, ", "), "the context of the caller ended: the client is gone"; got != want {
				t.Errorf("the journal says %q, want %q", got, want)
			}
		})
	}
}

// TestBindContextWaiting checks that a bound run is cancelled with its context while it waits for a decision and while
// the function Approve is deciding.
func TestBindContextWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &shop{}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": answers(responds(tenon.StopToolUse, callPart("1", "sell", `{}`)))},
		Toolsets: map[string]tenon.Toolset{"shop": s},
		Approve: func(ctx context.Context, _ host.Approval) (host.Ruling, error) {
			cancel()
			<-ctx.Done()
			return host.Ruling{}, ctx.Err()
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	a, err := host.Ask(ctx, h, host.Question{Text: "Sell.", BindContext: true})
	if tenon.ErrorCode(err) != tenon.CodeCancelled || a.Run.State != tenon.RunCancelled || s.sold.Load() != 0 {
		t.Errorf("sold %d, %+v, %v", s.sold.Load(), a.Run, err)
	}
}

// TestBindContextEnds checks that the end of a context does not affect a run that has already ended, and that a bound
// run can be resumed after Close.
func TestBindContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	home := t.TempDir()
	h := openModel(t, home, answers(responds(tenon.StopEnd, textPart("done"))), nil)
	a, err := host.Ask(ctx, h, host.Question{Text: "go", BindContext: true})
	if err != nil || a.Run.State != tenon.RunCompleted {
		t.Fatalf("%+v, %v", a, err)
	}
	began := make(chan struct{})
	x := host.NewFunction("x", "Waits", func(ctx context.Context, _ struct{}) (string, error) {
		close(began)
		<-ctx.Done()
		return "", ctx.Err()
	}).ReadOnly()
	h2 := openModel(t, home, callsX(), nil)
	s, err := h2.Start(ctx, host.Question{Text: "go", BindContext: true, Functions: []host.Function{x}})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := h2.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if row, err := h.Runs().Get(t.Context(), s.ID); err != nil || row.State != tenon.RunWorking {
		t.Errorf("after Close: %+v, %v", row, err)
	}
	if row, err := h.Runs().Get(t.Context(), a.Run.ID); err != nil || row.State != tenon.RunCompleted {
		t.Errorf("the first run: %+v, %v", row, err)
	}
}
