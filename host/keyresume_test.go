package host_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	scripts "github.com/tenonhq/tenon/model/script"
)

// interrupted leaves a run with the key k in a home, on which no process works: its host was closed during a call. It
// returns the run, and a function that opens the next host, whose calls end at once.
func interrupted(t *testing.T, q host.Question) (tenon.Run, *atomic.Int64, func() *host.Host) {
	t.Helper()
	m, err := scripts.Parse("waits", []byte("steps:\n  - {calls: [{name: wait, arguments: {}}]}\n  - {text: done, repeat: forever}\n"))
	if err != nil {
		t.Fatal(err)
	}
	home, calls, began := t.TempDir(), new(atomic.Int64), make(chan struct{}, 1)
	open := func(wait func(context.Context)) *host.Host {
		f := host.NewFunction("wait", "Waits", func(ctx context.Context, _ struct{}) (string, error) {
			calls.Add(1)
			wait(ctx)
			return "waited", ctx.Err()
		}).ReadOnly()
		h, err := host.Open(t.Context(), host.Config{Home: home, Models: map[string]tenon.Model{"m": m}, Functions: []host.Function{f}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h := open(func(ctx context.Context) { began <- struct{}{}; <-ctx.Done() })
	started, err := h.Start(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return started.Run, calls, func() *host.Host { return open(func(context.Context) {}) }
}

// TestKeyResumes asks with the key of a run whose process is gone. The process that asks resumes it.
func TestKeyResumes(t *testing.T) {
	q := host.Question{Text: "wait", Key: "k"}
	ended := func(t *testing.T, ctx context.Context, h *host.Host, run string) {
		t.Helper()
		for e, err := range h.Runs().Events(ctx, run, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == tenon.EventDone {
				return
			}
		}
		t.Error("the run has not ended")
	}
	for name, ask := range map[string]func(t *testing.T, ctx context.Context, h *host.Host, run tenon.Run){
		"RP-16_ask": func(t *testing.T, ctx context.Context, h *host.Host, run tenon.Run) {
			a, err := host.Ask(ctx, h, q)
			if err != nil || a.Text != "done" || a.Run.ID != run.ID {
				t.Error(a.Text, a.Run.ID, err)
			}
		},
		"RP-16_stream": func(t *testing.T, ctx context.Context, h *host.Host, _ tenon.Run) {
			last := ""
			for e, err := range h.Stream(ctx, q) {
				if err != nil {
					t.Fatal(err)
				}
				last = e.Kind
			}
			if last != tenon.EventDone {
				t.Error(last)
			}
		},
		"RP-16_start": func(t *testing.T, ctx context.Context, h *host.Host, run tenon.Run) {
			s, err := h.Start(ctx, q)
			if err != nil || !s.Again || s.ID != run.ID {
				t.Fatal(s, err)
			}
			ended(t, ctx, h, run.ID)
		},
		"RP-16_steer": func(t *testing.T, ctx context.Context, h *host.Host, run tenon.Run) {
			s, after, err := host.StartOrSteer(ctx, h, host.Question{Text: "more", Session: run.Session, Key: "other"}, "me")
			if err != nil || after == 0 || s.ID != run.ID {
				t.Fatal(s, after, err)
			}
			ended(t, ctx, h, run.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, calls, open := interrupted(t, q)
			h := open()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a hang lasts so long
			defer cancel()
			ask(t, ctx, h, run)
			if n := calls.Load(); n != 2 {
				t.Errorf("%d calls; the read-only one is repeated once", n)
			}
			if s, err := h.Start(ctx, q); err != nil || s.ID != run.ID || !s.State.Ended() {
				t.Error("again: ", s, err)
			}
		})
	}
}

// TestBusySession checks that the error about a session at work says what its run needs.
func TestBusySession(t *testing.T) {
	t.Run("RP-16_interrupted", func(t *testing.T) {
		run, _, open := interrupted(t, host.Question{Text: "wait"})
		_, err := open().Start(t.Context(), host.Question{Text: "more", Session: run.Session})
		if !host.IsBusy(err) || !strings.Contains(err.Error(), "tenon runs resume "+run.ID) {
			t.Error(err)
		}
	})
	t.Run("RP-16_waiting", func(t *testing.T) {
		m, err := scripts.Parse("pays", []byte("steps:\n  - {calls: [{name: pay, arguments: {}}]}\n  - {text: done, repeat: forever}\n"))
		if err != nil {
			t.Fatal(err)
		}
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"m": m}, Functions: []host.Function{
			host.NewFunction("pay", "Pays", func(context.Context, struct{}) (string, error) { return "paid", nil })}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		a, err := h.Ask(t.Context(), "pay")
		if tenon.ErrorCode(err) != tenon.CodeWaiting {
			t.Fatal(err)
		}
		for _, key := range []string{"", "k"} {
			_, err = h.Start(t.Context(), host.Question{Text: "more", Session: a.Run.Session, Key: key})
			if !host.IsBusy(err) || !strings.Contains(err.Error(), "waits for a decision") || strings.Contains(err.Error(), "wait for its end") {
				t.Errorf("key %q: %v", key, err)
			}
		}
		if _, _, err := h.Approvals().Decide(t.Context(), a.Run.ID, "1.0", agent.Ruling{Verdict: tenon.Deny}); err != nil {
			t.Error(err)
		}
	})
}
