package host_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// openModel opens a host without toolsets. Its model plays the steps.
func openModel(t *testing.T, home string, m tenon.Model, cfg *config.Config) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{Home: home, Config: cfg, Models: map[string]tenon.Model{"own": m},
		Model: "own", LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// counterTool returns a function x that counts its calls.
func counterTool(n *atomic.Int32) host.Function {
	return host.NewFunction("x", "Counts", func(context.Context, struct{}) (string, error) {
		n.Add(1)
		return "counted", nil
	})
}

// callsOf returns the calls of a run, each as "name outcome error".
func callsOf(t *testing.T, h *host.Host, run string) string {
	t.Helper()
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range r.ToolCalls {
		list = append(list, strings.TrimSpace(c.Server+"."+c.Name+" "+c.Outcome+" "+c.Error))
	}
	return strings.Join(list, "\n")
}

// TestQuestionTools checks that the rules apply to the tools that a question brings, and that the next question does
// not have these tools.
func TestQuestionTools(t *testing.T) {
	for _, tt := range []struct {
		name     string
		question func(f host.Function) host.Question
		server   string
	}{
		{"functions", func(f host.Function) host.Question { return host.Question{Functions: []host.Function{f}} }, "functions"},
		{"toolsets", func(f host.Function) host.Question {
			s, err := host.NewToolset(f)
			if err != nil {
				panic(err)
			}
			return host.Question{Toolsets: map[string]tenon.Toolset{"mine": s}}
		}, "mine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n atomic.Int32
			h := openModel(t, t.TempDir(), answers(responds(tenon.StopToolUse, callPart("1", "x", `{}`)), responds(tenon.StopEnd, textPart("done")),
				responds(tenon.StopToolUse, callPart("2", "x", `{}`)), responds(tenon.StopEnd, textPart("none"))), nil)
			q := tt.question(counterTool(&n).ReadOnly())
			q.Text = "Count."
			req, _, err := h.Models().Prompt(t.Context(), q)
			if err != nil || len(req.Tools) != 1 || req.Tools[0].Name != "x" {
				t.Fatalf("the request: %+v, %v", req, err)
			}
			a, err := host.Ask(t.Context(), h, q)
			if err != nil || n.Load() != 1 {
				t.Fatalf("called %d times, error %v", n.Load(), err)
			}
			if got, want := callsOf(t, h, a.Run.ID), tt.server+".x result"; got != want {
				t.Errorf("calls %q, want %q", got, want)
			}
			a, err = host.Ask(t.Context(), h, host.Question{Text: "Again.", Session: a.Run.Session})
			if err != nil || n.Load() != 1 {
				t.Errorf("called %d times, error %v", n.Load(), err)
			}
			if got := callsOf(t, h, a.Run.ID); !strings.Contains(got, ".x invalid") {
				t.Errorf("the next question: %q", got)
			}
		})
	}
}

// TestQuestionToolsRules checks that a rule can deny a tool of a question, and that a tool that changes something needs
// an approval.
func TestQuestionToolsRules(t *testing.T) {
	var n atomic.Int32
	deny := &config.Config{Policy: policy.Config{Rules: []policy.Rule{{When: `tool.remote_name == "x"`, Verdict: "deny"}}}}
	h := openModel(t, t.TempDir(), callsX(), deny)
	a, err := host.Ask(t.Context(), h, host.Question{Text: "Count.", Functions: []host.Function{counterTool(&n).ReadOnly()}})
	if got := callsOf(t, h, a.Run.ID); err != nil || n.Load() != 0 || !strings.Contains(got, ".x denied") {
		t.Errorf("called %d times, %q, error %v", n.Load(), got, err)
	}
	h = openModel(t, t.TempDir(), callsX(), nil)
	a, err = host.Ask(t.Context(), h, host.Question{Text: "Count.", Functions: []host.Function{counterTool(&n)}})
	if tenon.ErrorCode(err) != tenon.CodeWaiting || n.Load() != 0 {
		t.Fatalf("called %d times, error %v", n.Load(), err)
	}
	// The process still has the function, however long the run has waited.
	allow(t, h, a.Run.ID)
	if got := callsOf(t, h, a.Run.ID); n.Load() != 1 || got != "functions.x result" {
		t.Errorf("called %d times, %q", n.Load(), got)
	}
}

// allow allows the calls that a run waits for, and follows the run to its end.
func allow(t *testing.T, h *host.Host, run string) {
	t.Helper()
	list, err := h.Approvals().List(t.Context(), run)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), run, list[0].Step, host.Ruling{Verdict: tenon.Allow, By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestQuestionToolsElsewhere checks that another process does not have the tools of a question. The model gets an error
// for the call, unless a question with the same key has supplied the tools again.
func TestQuestionToolsElsewhere(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "given again": true} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			home := t.TempDir()
			q := host.Question{Text: "Count.", Key: "k", Functions: []host.Function{counterTool(&n)}}
			h := openModel(t, home, callsX(), nil)
			a, err := host.Ask(t.Context(), h, q)
			if tenon.ErrorCode(err) != tenon.CodeWaiting {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			h = openModel(t, home, answers(responds(tenon.StopEnd, textPart("done"))), nil)
			want := "functions.x failed server 'functions' of tool 'x' is not configured any more"
			if again {
				want = "functions.x result"
				if s, err := h.Start(t.Context(), q); err != nil || !s.Again || s.ID != a.Run.ID {
					t.Fatalf("%+v, %v", s, err)
				}
			}
			allow(t, h, a.Run.ID)
			if got := callsOf(t, h, a.Run.ID); !strings.HasPrefix(got, want) || again != (n.Load() == 1) {
				t.Errorf("called %d times, %q", n.Load(), got)
			}
			if row, err := h.Runs().Get(t.Context(), a.Run.ID); err != nil || row.State != tenon.RunCompleted {
				t.Errorf("%+v, %v", row, err)
			}
		})
	}
}

// TestQuestionToolsNames checks two errors: a tool of a question has a name that is already in use, and a rule names a
// tool whose name would become ambiguous.
func TestQuestionToolsNames(t *testing.T) {
	var n atomic.Int32
	f := counterTool(&n)
	set, err := host.NewToolset(f)
	if err != nil {
		t.Fatal(err)
	}
	named := &config.Config{Policy: policy.Config{Rules: []policy.Rule{{When: `tool.name == "x"`, Verdict: "deny"}}}}
	for _, tt := range []struct {
		name string
		cfg  host.Config
		q    host.Question
		want string
	}{
		{"a server of the host", host.Config{Toolsets: map[string]tenon.Toolset{"mine": set}},
			host.Question{Toolsets: map[string]tenon.Toolset{"mine": set}}, "has the name of a server of the host"},
		{"a disabled server", host.Config{Config: &config.Config{Servers: map[string]servers.Config{"mine": {Command: "x", Enabled: new(bool)}}}},
			host.Question{Toolsets: map[string]tenon.Toolset{"mine": set}}, "has the name of a server of the host"},
		{"tenon's own", host.Config{}, host.Question{Toolsets: map[string]tenon.Toolset{"agents": set}}, "tenon's own tools"},
		{"nil", host.Config{}, host.Question{Toolsets: map[string]tenon.Toolset{"mine": nil}}, "is nil"},
		{"a function twice", host.Config{Functions: []host.Function{f}}, host.Question{Functions: []host.Function{f}}, "two functions 'x'"},
		{"an ambiguous rule", host.Config{Config: named, Functions: []host.Function{f}},
			host.Question{Toolsets: map[string]tenon.Toolset{"mine": set}}, "tool.name is ambiguous"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Home, tt.cfg.Models, tt.q.Text = t.TempDir(), map[string]tenon.Model{"own": callsX()}, "q"
			h, err := host.Open(t.Context(), tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			_, err = h.Start(t.Context(), tt.q)
			if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestStreamText checks that the text of a stream is complete even if the caller skips its pieces, and that each event
// has a typed value.
func TestStreamText(t *testing.T) {
	var n atomic.Int32
	h := openModel(t, t.TempDir(), answers(responds(tenon.StopToolUse, textPart("Let me count."), callPart("1", "x", `{}`)),
		responds(tenon.StopEnd, textPart("done"))), nil)
	var got []string
	for e, err := range h.Stream(t.Context(), host.Question{Text: "Count.", Functions: []host.Function{counterTool(&n).ReadOnly()}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Value().(type) {
		case *view.Text:
			got = append(got, "text "+d.Text)
		case *view.ToolCall:
			got = append(got, "call "+d.Name)
		case *view.Outcome:
			got = append(got, "result "+d.Result.Text())
		case *view.Done:
			got = append(got, "done "+d.Answer)
		}
	}
	if got, want := strings.Join(got, ", "), "text Let me count., call x, result counted, text done, done done"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAskFor checks that AskFor returns a value of the requested type.
func TestAskFor(t *testing.T) {
	h := openModel(t, t.TempDir(), answers(responds(tenon.StopEnd, textPart(`{"km": 346}`))), nil)
	type river struct {
		Length int `json:"km"`
	}
	r, a, err := host.AskFor[river](t.Context(), h, host.Question{Text: "How long is the Thames?"})
	if err != nil || r.Length != 346 || a.Text != `{"km":346}` {
		t.Errorf("%+v, %+v, %v", r, a, err)
	}
	if _, _, err := host.AskFor[chan int](t.Context(), h, host.Question{Text: "q"}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("a type without a schema: %v", err)
	}
}
