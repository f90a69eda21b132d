package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// lasting is a toolset whose tool x runs until its context ends.
type lasting struct{ ownTools }

func (lasting) Call(ctx context.Context, _ tenon.Call) (*tenon.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func callsX() ownModel {
	return answers(responds(tenon.StopToolUse, callPart("1", "x", `{}`)), responds(tenon.StopEnd, textPart("done")))
}

// TestRunEndsWithItsContext ends the context of a follower. The follower gets an error, and the run continues.
func TestRunEndsWithItsContext(t *testing.T) {
	h := openOwn(t, callsX(), lasting{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var run string
	var last error
	for e, err := range h.Stream(ctx, host.Question{Text: "go"}) {
		if last = err; err != nil {
			continue
		}
		if run = e.Run; e.Kind == tenon.EventStarted && e.Step == "1.0" {
			cancel()
		}
	}
	if tenon.ErrorCode(last) != tenon.CodeCancelled || !errors.Is(last, context.Canceled) || !strings.Contains(last.Error(), run) {
		t.Errorf("the last error is %v", last)
	}
	row, err := h.Runs().Get(t.Context(), run)
	if err != nil || row.State != tenon.RunWorking {
		t.Errorf("the run: %+v, %v", row, err)
	}
	if err := h.Runs().Cancel(t.Context(), run, "enough"); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileFollowed closes a host while a run is followed, by this host and by another host on the same store.
// Then it uses the closed host.
func TestCloseWhileFollowed(t *testing.T) {
	home := t.TempDir()
	open := func() *host.Host {
		h, err := host.Open(t.Context(), host.Config{Home: home, Model: "own", Models: map[string]tenon.Model{"own": callsX()},
			Toolsets: map[string]tenon.Toolset{"mine": lasting{}}, LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h, other := open(), open()
	began, ended := make(chan string, 1), make(chan error, 2)
	follow := func(h *host.Host, run string) {
		var last error
		for e, err := range h.Runs().Events(context.Background(), run, 0) {
			if last = err; e.Kind == tenon.EventStarted && e.Step == "1.0" {
				began <- run
			}
		}
		ended <- last
	}
	row, err := h.Start(t.Context(), host.Question{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*host.Host{h, other} {
		go follow(h, row.ID)
		<-began
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; tenon.ErrorCode(err) != tenon.CodeCancelled || !strings.Contains(err.Error(), "can be resumed") {
			t.Errorf("who followed was told: %v", err)
		}
	}
	if _, err := h.Start(context.Background(), host.Question{Text: "go"}); tenon.ErrorCode(err) != tenon.CodeCancelled || !strings.Contains(err.Error(), "nothing was started") {
		t.Errorf("Start: %v", err)
	}
	if _, err := h.Runs().Get(context.Background(), row.ID); tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("RunRow: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	var kinds []string
	events, err := open().Runs().Open(row.ID).Journal(t.Context(), 0, 0)
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); err != nil || !strings.HasSuffix(got, agent.EventDecided+" "+tenon.EventStarted) {
		t.Errorf("journal: %s, %v", got, err)
	}
}
