package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// said returns a session's conversation in one line: u (user), a (assistant), c (calls) and t (tool results).
func said(t *testing.T, h *host.Host, session string) string {
	t.Helper()
	list, err := h.Sessions().Transcripts().Messages(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, m := range list {
		if m.N != i+1 || m.Run == "" || m.Seq == 0 || m.Time.IsZero() {
			t.Errorf("message %d: %+v", i, m)
		}
		switch {
		case len(m.Calls()) > 0:
			b.WriteString("c")
		default:
			b.WriteString(string(m.Role)[:1])
		}
	}
	return b.String()
}

// stored returns how many of the events are in the journal.
func stored(events []tenon.Event) int {
	n := 0
	for _, e := range events {
		n = max(n, int(e.Seq))
	}
	return n
}

// TestFork forks a conversation at each of its messages. The conversation has two questions, and the first one called a
// tool.
func TestFork(t *testing.T) {
	h := open(t, t.TempDir(), `
conversations:
  - match: tea
    steps: [{calls: [{name: price, arguments: {thing: tea}}, {name: price, arguments: {thing: milk}}]}, {text: three}]
  - steps: [{text: yes}]
`, &shop{})
	first, _ := ask(t, h, host.Question{Text: "What does tea cost?"})
	second, events := ask(t, h, host.Question{Text: "Sure?", Session: first.Session})
	if got := said(t, h, first.Session); got != "ucta"+"ua" {
		t.Fatalf("said: %s", got)
	}
	ids := map[string]string{"": ""}
	for at, want := range map[string]struct {
		n    int
		said string
	}{
		"":                {6, "uctaua"},
		"1":               {1, "u"},
		"2":               {3, "uct"}, // a call is never separated from its result
		"3":               {3, "uct"},
		"4":               {4, "ucta"},
		"5":               {5, "uctau"},
		"6":               {6, "uctaua"},
		first.Run:         {4, "ucta"},
		first.Run + ":1":  {1, "u"},
		first.Run + ":4":  {3, "uct"},
		second.Run + ":1": {5, "uctau"},
		fmt.Sprint(second.Run, ":", stored(events)): {6, "uctaua"},
	} {
		s, n, err := h.Sessions().Fork(t.Context(), host.Fork{Session: first.Session, At: at, Title: "at " + at})
		if err != nil {
			t.Fatalf("at %s: %v", at, err)
		}
		if n != want.n || said(t, h, s.ID) != want.said || s.Parent != first.Session || s.Title != "at "+at {
			t.Errorf("at %s: message %d, %s, %+v, want %d %s", at, n, said(t, h, s.ID), s, want.n, want.said)
		}
		ids[at] = s.ID
	}
	// Both the fork and the original session can continue.
	r, _ := ask(t, h, host.Question{Text: "And now?", Session: ids["2"]})
	if got := said(t, h, r.Session); r.Session != ids["2"] || got != "uctua" {
		t.Errorf("the fork of message 2 became %s", got)
	}
	ask(t, h, host.Question{Text: "And now?", Session: first.Session})
	if got := said(t, h, first.Session); got != "uctauaua" {
		t.Errorf("the first session became %s", got)
	}
	if got := said(t, h, ids[""]); got != "uctaua" {
		t.Errorf("its fork became %s", got)
	}
	// A fork of a fork, at a message of the original session.
	s, _, err := h.Sessions().Fork(t.Context(), host.Fork{Session: r.Session, At: "1"})
	if err != nil || said(t, h, s.ID) != "u" || s.Parent != r.Session || s.Head != first.Run {
		t.Errorf("fork of a fork: %+v %v", s, err)
	}
	replay(t, h, r.Session)
	if err := h.Sessions().Delete(t.Context(), first.Session); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("a session with forks was deleted: %v", err)
	}
	for at, code := range map[string]tenon.Code{
		"0": tenon.CodeInvalid, "-1": tenon.CodeInvalid, "9": tenon.CodeInvalid, "nope": tenon.CodeNotFound, first.Run + ":x": tenon.CodeInvalid,
		first.Run + ":99": tenon.CodeInvalid, first.Run + ":0": tenon.CodeInvalid, r.Run: tenon.CodeInvalid,
	} {
		if _, _, err := h.Sessions().Fork(t.Context(), host.Fork{Session: first.Session, At: at}); tenon.ErrorCode(err) != code {
			t.Errorf("at %s: %v, want %s", at, err, code)
		}
	}
}

// TestForkOfResumedRun resumes a failed run after its session has continued. Its answer is not in the session, and a
// fork at the run has it.
func TestForkOfResumedRun(t *testing.T) {
	broken := true
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		last := req.Messages[len(req.Messages)-1].Text()
		if broken && last == "first" {
			return nil, tenon.Errorf(tenon.CodeAuth, "the key is wrong")
		}
		return says("about " + last), nil
	})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	a, _ := host.Ask(t.Context(), h, host.Question{Text: "first"})
	failed, err := h.Runs().Get(t.Context(), a.Run.ID)
	if err != nil || failed.State != tenon.RunFailed {
		t.Fatalf("%+v, %v", failed, err)
	}
	if _, err := host.Ask(t.Context(), h, host.Question{Text: "second", Session: failed.Session}); err != nil {
		t.Fatal(err)
	}
	broken = false
	if err := h.Runs().Resume(t.Context(), failed.ID); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), failed.ID, failed.Seq) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := said(t, h, failed.Session); got != "u"+"ua" {
		t.Errorf("the session: %s", got)
	}
	s, n, err := h.Sessions().Fork(t.Context(), host.Fork{At: failed.ID})
	if err != nil || n != 2 || said(t, h, s.ID) != "ua" || s.Parent != failed.Session {
		t.Fatalf("RP-3_fork_of_resumed: message %d, %s, %+v, %v", n, said(t, h, s.ID), s, err)
	}
	next, err := host.Ask(t.Context(), h, host.Question{Text: "third", Session: s.ID})
	if err != nil || said(t, h, s.ID) != "ua"+"ua" || next.Run.Parent != failed.ID {
		t.Errorf("%s, %+v, %v", said(t, h, s.ID), next.Run, err)
	}
	replay(t, h, s.ID)
}

// TestForkOfABusySession forks a session during a call and asks a question in the fork. The fork must not contain the
// call that has no result.
func TestForkOfABusySession(t *testing.T) {
	s := &shop{gate: make(chan struct{})}
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Text() == "An aside":
			return says("yes"), nil
		case len(req.Messages) == 1:
			return calls(`price {"thing":"tea"}`), nil
		case len(req.Messages) == 3:
			return calls(`sell {}`), nil
		}
		return says("done"), nil
	})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": s},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	run, err := h.Start(t.Context(), host.Question{Text: "Sell tea.", Grant: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for e, err := range h.Runs().Events(ctx, run.ID, 0) {
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		if e.Kind == tenon.EventStarted && e.Step == "2.0" {
			stop()
		}
	}
	if _, err := h.Start(t.Context(), host.Question{Text: "An aside", Session: run.Session}); tenon.ErrorCode(err) != tenon.CodeConflict ||
		!strings.Contains(err.Error(), "--fork") {
		t.Errorf("a second run: %v", err)
	}
	r, _ := ask(t, h, host.Question{Text: "An aside", Session: run.Session, Fork: true})
	if r.Answer != "yes" || r.Session == run.Session {
		t.Errorf("the fork: %+v", r)
	}
	if got := said(t, h, r.Session); got != "uct"+"ua" {
		t.Errorf("the fork said %s", got)
	}
	if _, _, err := h.Sessions().Fork(t.Context(), host.Fork{Session: run.Session, At: "4"}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("at a call without a result: %v", err)
	}
	close(s.gate)
	if r, _ := follow(t, h, run.ID); r.Answer != "done" {
		t.Errorf("the session's run: %+v", r)
	}
	if got := said(t, h, r.Session); got != "uctua" {
		t.Errorf("the fork became %s", got)
	}
	list, err := h.Sessions().List(t.Context(), host.SessionFilter{Limit: 0})
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	for _, s := range list {
		parents[s.ID] = s.Parent
	}
	if diff := cmp.Diff(map[string]string{run.Session: "", r.Session: run.Session}, parents); diff != "" {
		t.Error(diff)
	}
}
