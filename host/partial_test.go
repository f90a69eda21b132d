package host_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// halfModel writes half of an answer and waits until it is cancelled.
type halfModel struct{ began chan struct{} }

func (m halfModel) Name() string { return "own/half" }

func (m halfModel) Generate(ctx context.Context, _ *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		for _, d := range []tenon.Delta{{Kind: tenon.DeltaText, Text: "void"}, {Kind: tenon.DeltaReset, Text: "again"},
			{Kind: tenon.DeltaThinking, Text: "hm"}, {Kind: tenon.DeltaText, Text: "half "},
			{Kind: tenon.DeltaText, Text: "an"}} {
			if !yield(d, nil) {
				return
			}
		}
		close(m.began)
		<-ctx.Done()
		yield(tenon.Delta{}, context.Cause(ctx))
	}
}

// half starts a question and returns when the model has written half of its answer.
func half(t *testing.T, home string) (*host.Host, string) {
	m := halfModel{make(chan struct{})}
	h := openModel(t, home, m, &config.Config{Agents: map[string]agent.Config{"default": {Model: "own"}}})
	s, err := h.Start(t.Context(), host.Question{Text: "q"})
	if err != nil {
		t.Fatal(err)
	}
	<-m.began
	return h, s.ID
}

// stopped cancels a run while its answer arrives, and returns the events.
func stopped(t *testing.T) []tenon.Event {
	h, run := half(t, t.TempDir())
	if err := h.Runs().Cancel(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	_, events := follow(t, h, run)
	return events
}

// TestPartialAtClose closes a host while an answer arrives. The journal keeps the partial text, and the process that
// continues the run asks the model again.
func TestPartialAtClose(t *testing.T) {
	home := t.TempDir()
	h, run := half(t, home)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = openModel(t, home, answers(responds(tenon.StopEnd, textPart("whole"))),
		&config.Config{Agents: map[string]agent.Config{"default": {Model: "own"}}})
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil || r.Partial != "half an" || r.State != tenon.RunWorking {
		t.Fatalf("UX-8: the report after the close: %+v, %v", r, err)
	}
	if err := h.Runs().Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	follow(t, h, run)
	r, err = h.Runs().Open(run).Report(t.Context())
	if err != nil || r.Answer != "whole" || r.Partial != "" {
		t.Errorf("UX-8: the report at the end: %+v, %v", r, err)
	}
}

// TestUnendedCalls reads the conversation of a run whose call waits for a person. No user interface shows the
// placeholder result that only the model gets (UX-8).
func TestUnendedCalls(t *testing.T) {
	h := open(t, t.TempDir(), sellSteps, &shop{})
	row, _ := ask(t, h, host.Question{Text: "q"})
	run, err := h.Runs().Get(t.Context(), row.Run)
	if err != nil {
		t.Fatal(err)
	}
	tr := h.Sessions().Transcripts()
	said, err := tr.Messages(t.Context(), run.Session)
	if err != nil || len(said) != 2 || len(said[1].Calls()) != 1 {
		t.Errorf("messages: %+v, %v", said, err)
	}
	talk, err := h.Runs().Open(run.ID).Conversation(t.Context())
	if err != nil || len(talk) == 0 || talk[len(talk)-1].Role == tenon.RoleTool || len(talk[len(talk)-1].Calls()) > 0 {
		t.Errorf("conversation: %+v, %v", talk, err)
	}
	fork, _, err := h.Sessions().Fork(t.Context(), host.Fork{Session: run.Session})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{run.Session, fork.ID} {
		for _, f := range []host.Format{host.FormatMarkdown, host.FormatJSON} {
			var b bytes.Buffer
			if err := tr.Export(t.Context(), &b, id, f); err != nil || strings.Contains(b.String(), "not run") {
				t.Errorf("export of %s as %s, %v:\n%s", id, f, err, b.String())
			}
			if id == run.Session && f == host.FormatMarkdown && !strings.Contains(b.String(), "; the call has not ended]*") {
				t.Errorf("the export does not show the call:\n%s", b.String())
			}
		}
	}
}
