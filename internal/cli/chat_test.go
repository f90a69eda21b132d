package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// reader is a toolset with one tool that needs no approval. While the tool runs, the test types.
type reader struct {
	typed string
	to    *io.PipeWriter
	seen  func()
}

func (r *reader) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "read", Name: "read", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (r *reader) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	if _, err := io.WriteString(r.to, r.typed); err != nil {
		return nil, err
	}
	r.seen()
	return &tenon.Result{Content: []tenon.Content{tenon.Text("read")}}, nil
}

var _ tenon.Toolset = (*reader)(nil)

// TestTypedDuringAnAnswer checks that a text that is typed during an answer becomes a message to the current run. A
// text that comes too late, and a command with a slash, wait for the next prompt.
func TestTypedDuringAnAnswer(t *testing.T) {
	dir := t.TempDir()
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps:\n  - calls: [{name: read, arguments: {}}]\n  - text: Done.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, typing := io.Pipe()
	r := &reader{typed: "\nonly ten\n/session\nand another question\n", to: typing}
	var out, errs bytes.Buffer
	a := newApp(stdio{in, &out, &errs})
	a.lookupEnv = func(string) (string, bool) { return "", false }
	a.inTTY, a.outTTY, a.errTTY, a.talking = true, true, true, true
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + steps, Toolsets: map[string]tenon.Toolset{"disk": r}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r.seen = func() { // the message is stored before the call ends
		for range 12_000 { // a minute
			time.Sleep(5 * time.Millisecond)
			list, err := h.Runs().List(t.Context(), engine.Filter{})
			if err != nil || len(list) == 0 {
				continue
			}
			events, _ := h.Runs().Open(list[0].ID).Journal(t.Context(), 0, 0)
			for _, e := range events {
				if e.Kind == agent.EventMessage {
					return
				}
			}
		}
		t.Error("the message does not come")
	}
	run, err := a.question(t.Context(), h, host.Question{Text: "list them", Grant: "test"}, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	messages, err := h.Sessions().Transcripts().Context(t.Context(), run.Session, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 5 || messages[3].Text() != "only ten" {
		t.Errorf("the conversation has %d messages; the fourth is %+v", len(messages), messages[3])
	}
	if !strings.Contains(errs.String(), "» only ten (local)") {
		t.Errorf("the message is not shown: %q", errs.String())
	}
	for _, want := range []string{"/session", "and another question"} {
		if got, err := a.lines.next(t.Context()); got != want || err != nil {
			t.Errorf("the prompt reads %q (%v), want %q", got, err, want)
		}
	}
}

// TestNoModelIsFound checks what happens without a configured model. The built-in script answers the questions that it
// knows, and other questions are errors. Only a conversation at a terminal begins in any case, and lists the questions
// that the script answers.
func TestNoModelIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		o     opening
		model string
		told  string
	}{
		"known":       {opening{asks: " and in Paris? "}, host.DemoModel, "a built-in script answers\n"},
		"short":       {opening{asks: "What’s the weather in London?"}, host.DemoModel, "a built-in script answers\n"},
		"not known":   {opening{asks: "And in Rome?"}, "", ""},
		"talks":       {opening{asks: "chat", talks: true}, host.DemoModel, `answers "What is the weather in London?", "And in Paris?" and "Count one up."`},
		"from a pipe": {opening{asks: "chat"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			a := newApp(stdio{strings.NewReader(""), io.Discard, &errs})
			a.lookupEnv = func(name string) (string, bool) { return "1", name == "TENON_NO_PROBE" }
			if got := a.findModel(t.Context(), &config.Config{}, tt.o); got != tt.model {
				t.Errorf("%q, want %q", got, tt.model)
			}
			if !strings.Contains(errs.String(), tt.told) || tt.told == "" && errs.Len() > 0 {
				t.Errorf("told %q, want %q", errs.String(), tt.told)
			}
		})
	}
}

// TestShowOffered checks that the output of /tools is aligned in columns.
func TestShowOffered(t *testing.T) {
	var errs bytes.Buffer
	a := newApp(stdio{strings.NewReader(""), io.Discard, &errs})
	long := strings.Repeat("n", 41)
	list := make([]host.ToolInfo, 4)
	for i, t := range []tenon.Tool{{Name: "add", Description: "Adds"}, {Name: "get_weather", Description: "The weather"}, {Name: long, Description: "Long"}, {Name: "bare"}} {
		list[i].Tool = t
	}
	a.showOffered(list)
	want := "add          Adds\nget_weather  The weather\n" + long + "  Long\nbare\n"
	if errs.String() != want {
		t.Errorf("got\n%swant\n%s", errs.String(), want)
	}
}
