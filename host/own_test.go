package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// ownModel is a model written in Go. Each element is what it yields for one request; the last one repeats.
type ownModel struct {
	turns []func(yield func(tenon.Delta, error) bool)
	n     *int
}

func (m ownModel) Name() string { return "own/model" }

func (m ownModel) Generate(context.Context, *tenon.Request) iter.Seq2[tenon.Delta, error] {
	turn := m.turns[min(*m.n, len(m.turns)-1)]
	*m.n++
	return func(yield func(tenon.Delta, error) bool) { turn(yield) }
}

func answers(turns ...func(yield func(tenon.Delta, error) bool)) ownModel {
	return ownModel{turns, new(int)}
}

func responds(stop tenon.StopReason, parts ...tenon.Part) func(yield func(tenon.Delta, error) bool) {
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Response: &tenon.Response{Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: parts}, Stop: stop}}, nil)
	}
}

func textPart(text string) tenon.Part { return tenon.Part{Type: tenon.PartText, Text: text} }

func callPart(id, name, args string) tenon.Part {
	return tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}}
}

// ownTools is a toolset written in Go with one tool, x.
type ownTools struct {
	tools func() ([]tenon.Tool, error)
	call  func() (*tenon.Result, error)
}

func (o ownTools) Tools(context.Context) ([]tenon.Tool, error) {
	if o.tools != nil {
		return o.tools()
	}
	return []tenon.Tool{xTool("the first")}, nil
}

func (o ownTools) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	if o.call != nil {
		return o.call()
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text("called")}}, nil
}

func xTool(description string) tenon.Tool {
	yes := true
	return tenon.Tool{Remote: "x", Description: description, Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}
}

func openOwn(t *testing.T, m tenon.Model, tools tenon.Toolset) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "own", Models: map[string]tenon.Model{"own": m},
		Toolsets: map[string]tenon.Toolset{"mine": tools}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// asked asks one question. It returns the outcome of the run, and its journal.
func asked(t *testing.T, h *host.Host) (tenon.DoneData, []tenon.Event) {
	t.Helper()
	var done tenon.DoneData
	var events []tenon.Event
	for e, err := range h.Stream(t.Context(), host.Question{Text: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 0 {
			events = append(events, e.Event)
		}
		if strings.Contains(string(e.Data), "could not be written") {
			t.Errorf("event %d (%s): %s", e.Seq, e.Kind, e.Data)
		}
		if e.Kind == tenon.EventDone {
			if err := json.Unmarshal(e.Data, &done); err != nil {
				t.Fatal(err)
			}
		}
	}
	return done, events
}

// TestOwnModels lets models written in Go make mistakes. Each mistake fails the run or is corrected, and the process
// survives.
func TestOwnModels(t *testing.T) {
	end := responds(tenon.StopEnd, textPart("done"))
	for name, tt := range map[string]struct {
		m    ownModel
		code tenon.Code
		want string // part of the error, or of the answer if there is no error
	}{
		"panics": {answers(func(func(tenon.Delta, error) bool) { panic("oops") }), tenon.CodeInternal, "model own/model panicked"},
		"panics half-way": {answers(func(y func(tenon.Delta, error) bool) {
			y(tenon.Delta{Kind: tenon.DeltaText, Text: "h"}, nil)
			panic("oops")
		}), tenon.CodeInternal, "panicked"},
		"says nothing":     {answers(func(func(tenon.Delta, error) bool) {}), tenon.CodeInternal, "ended its stream without an answer"},
		"a plain error":    {answers(func(y func(tenon.Delta, error) bool) { y(tenon.Delta{}, errors.New("no luck")) }), tenon.CodeModel, "model own/model: no luck"},
		"an error of ours": {answers(func(y func(tenon.Delta, error) bool) { y(tenon.Delta{}, tenon.Errorf(tenon.CodeRateLimited, "slow")) }), tenon.CodeRateLimited, "slow"},
		"no message": {answers(func(y func(tenon.Delta, error) bool) {
			y(tenon.Delta{Response: &tenon.Response{Stop: tenon.StopEnd}}, nil)
		}), "", ""},
		"no stop reason":      {answers(responds("", textPart("x"))), tenon.CodeProtocol, `the stop reason ""`},
		"no such reason":      {answers(responds("martian", textPart("x"))), tenon.CodeProtocol, `the stop reason "martian"`},
		"a reason of ours":    {answers(responds(tenon.LimitTurns, textPart("x"))), tenon.CodeProtocol, "limit_turns"},
		"RP-16 no call":       {answers(responds(tenon.StopToolUse, tenon.Part{Type: tenon.PartCall}), end), "", "done"},
		"RP-16 only no call":  {answers(responds(tenon.StopToolUse, tenon.Part{Type: tenon.PartCall})), tenon.CodeModel, "(the tool call has no name)"},
		"RP-16 no name":       {answers(responds(tenon.StopEnd, callPart("1", "", `{}`))), tenon.CodeModel, "(the tool call has no name)"},
		"RP-16 no parts":      {answers(responds(tenon.StopToolUse)), tenon.CodeModel, `(the answer ended with "tool_use", but contains no tool call)`},
		"RP-16 no parts once": {answers(responds(tenon.StopToolUse), end), "", "done"},
		"RP-16 role user": {answers(func(y func(tenon.Delta, error) bool) {
			y(tenon.Delta{Response: &tenon.Response{Message: tenon.UserMessage("x"), Stop: tenon.StopEnd}}, nil)
		}), tenon.CodeProtocol, `a message of role "user"`},
		"a result":          {answers(responds(tenon.StopEnd, textPart("x"), tenon.Part{Type: tenon.PartResult})), "", "x"},
		"arguments no JSON": {answers(responds(tenon.StopToolUse, callPart("1", "x", `{"a":`)), end), "", "done"},
		"Raw no JSON":       {answers(responds(tenon.StopEnd, tenon.Part{Type: tenon.PartText, Text: "x", Wire: "w", Raw: json.RawMessage("{")})), "", "x"},
		"two answers":       {answers(func(y func(tenon.Delta, error) bool) { responds(tenon.StopEnd, textPart("x"))(y); end(y) }), "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			done, events := asked(t, openOwn(t, tt.m, ownTools{}))
			switch {
			case tt.code == "" && (done.State != tenon.RunCompleted || done.Answer != tt.want):
				t.Errorf("%+v", done)
			case tt.code != "" && (done.State != tenon.RunFailed || (done.Stop != tenon.StopError && done.Stop != tenon.StopBadCall) || tenon.ErrorCode(done.Error) != tt.code || !strings.Contains(done.Error.Message, tt.want)):
				t.Errorf("%+v, error %v", done, done.Error)
			}
			for _, e := range events {
				var d agent.Decision
				if e.Kind == agent.EventDecided && json.Unmarshal(e.Data, &d) == nil && (d.Verdict != tenon.Deny || !strings.Contains(d.Reason, "not valid JSON")) {
					t.Errorf("decided: %s", e.Data)
				}
			}
		})
	}
}

// TestOwnToolsets lets toolsets written in Go make mistakes.
func TestOwnToolsets(t *testing.T) {
	raw := json.RawMessage("{no")
	gives := func(r *tenon.Result, err error) ownTools {
		return ownTools{call: func() (*tenon.Result, error) { return r, err }}
	}
	for name, tt := range map[string]struct {
		tools ownTools
		want  string
		code  tenon.Code
	}{
		"called":           {ownTools{}, "called", ""},
		"nothing":          {gives(nil, nil), "neither a result nor an error", tenon.CodeProtocol},
		"a panic":          {ownTools{call: func() (*tenon.Result, error) { panic("oops") }}, "the tool failed", ""},
		"Raw":              {gives(&tenon.Result{Raw: raw}, nil), "Raw is not JSON", tenon.CodeProtocol},
		"Structured":       {gives(&tenon.Result{Structured: raw}, nil), "Structured is not JSON", tenon.CodeProtocol},
		"Meta":             {gives(&tenon.Result{Meta: raw}, nil), "Meta is not JSON", tenon.CodeProtocol},
		"two of a name":    {ownTools{tools: func() ([]tenon.Tool, error) { return []tenon.Tool{xTool("the first"), xTool("the second")}, nil }}, "called", ""},
		"a panic in Tools": {ownTools{tools: func() ([]tenon.Tool, error) { panic("oops") }}, "panicked when it was asked", tenon.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			h := openOwn(t, answers(responds(tenon.StopToolUse, callPart("1", "x", `{}`)), responds(tenon.StopEnd, textPart("done"))), tt.tools)
			r, _, err := host.CallTool(t.Context(), h, "x", json.RawMessage("{}"), nil)
			switch {
			case tenon.ErrorCode(err) != tt.code:
				t.Errorf("error %v, want code %q", err, tt.code)
			case err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("error %v, want %q", err, tt.want)
			case err == nil && r.Text() != tt.want:
				t.Errorf("gave %q, want %q", r.Text(), tt.want)
			}
			if done, _ := asked(t, h); done.State != tenon.RunCompleted || done.Answer != "done" {
				t.Errorf("%+v", done)
			}
			snapshot, problems, err := h.Tools().Snapshot(t.Context())
			if err != nil || len(snapshot.Tools()) != 1 && len(problems) == 0 {
				t.Errorf("%v, %v, %v", snapshot.Names(), problems, err)
			}
			for _, tool := range snapshot.Tools() {
				if tool.Description != "the first" {
					t.Errorf("tool: %+v", tool)
				}
			}
		})
	}
}

// TestOwnNil opens hosts with nil values where something is required.
func TestOwnNil(t *testing.T) {
	for name, cfg := range map[string]host.Config{
		"a model":              {Models: map[string]tenon.Model{"m": nil}},
		"a toolset":            {Toolsets: map[string]tenon.Toolset{"t": nil}},
		"the name of a set":    {Toolsets: map[string]tenon.Toolset{"a b": ownTools{}}},
		"tenon's own name":     {Toolsets: map[string]tenon.Toolset{"artifacts": ownTools{}}},
		"the configured's one": {Toolsets: map[string]tenon.Toolset{host.FunctionServer: ownTools{}}, Functions: []host.Function{host.NewFunction("f", "", func(context.Context, struct{}) (string, error) { return "", nil })}},
		"a server of nothing":  {Config: &config.Config{Servers: map[string]servers.Config{"s": {}}}},
		"a server of both":     {Config: &config.Config{Servers: map[string]servers.Config{"s": {Command: "x", URL: "http://127.0.0.1:1/mcp"}}}},
		"a server's name":      {Config: &config.Config{Servers: map[string]servers.Config{"a b": {Command: "x"}}}},
	} {
		cfg.Home = t.TempDir()
		h, err := host.Open(t.Context(), cfg)
		if tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = h.Close()
		}
	}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"mine": ownTools{}},
		Wrap: func(string, tenon.Toolset) tenon.Toolset { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Servers().Add(t.Context(), "other", servers.Config{}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("AddServer: %v", err)
	}
	if _, err := h.Start(t.Context(), host.Question{Text: "go", MaxTurns: -1}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("Start: %v", err)
	}
	if err := h.Tools().Add(t.Context(), "other", nil); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("AddToolset: %v", err)
	}
	snapshot, _, err := h.Tools().Snapshot(t.Context())
	if err != nil || !slices.Equal(snapshot.Names(), []string{"x"}) {
		t.Errorf("tools: %v, %v", snapshot.Names(), err)
	}
}

// TestRulings decides about a call with invalid verdicts. They decide nothing.
func TestRulings(t *testing.T) {
	changes := xTool("changes something")
	changes.Annotations = tenon.Annotations{}
	tools := ownTools{tools: func() ([]tenon.Tool, error) { return []tenon.Tool{changes}, nil }}
	h := openOwn(t, answers(responds(tenon.StopToolUse, callPart("1", "x", `{}`)), responds(tenon.StopEnd, textPart("done"))), tools)
	asked(t, h)
	list, err := h.Approvals().List(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	run, step := list[0].Run, list[0].Step
	for _, verdict := range []tenon.Verdict{"", tenon.Ask, "yes"} {
		if _, _, err := h.Approvals().Decide(t.Context(), run, step, agent.Ruling{Verdict: verdict}); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("verdict %q: %v", verdict, err)
		}
	}
	won, _, err := h.Approvals().Decide(t.Context(), run, step, agent.Ruling{Verdict: tenon.Deny})
	var r agent.Ruling
	if err == nil {
		err = json.Unmarshal(won.Data, &r)
	}
	if err != nil || r.Verdict != tenon.Deny || r.By != string(tenon.PrincipalLocal) {
		t.Errorf("%s, %v", won.Data, err)
	}
	// A person's own call may omit the arguments.
	if r, _, err := host.CallTool(t.Context(), h, "x", nil, nil); err != nil || r.Text() != "called" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCallsOfOneID lets a model use the same id for two calls. Each call gets a new id, and the result goes back with
// this id.
func TestCallsOfOneID(t *testing.T) {
	h := openOwn(t, answers(responds(tenon.StopToolUse, callPart("same", "x", `{"n":1}`), callPart("same", "x", `{"n":2}`)), responds(tenon.StopEnd, textPart("done"))), ownTools{})
	_, events := asked(t, h)
	messages, err := h.Runs().Open(events[0].Run).Conversation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				ids = append(ids, p.Call.ID)
			case p.Result != nil:
				ids = append(ids, p.Result.ID)
			}
		}
	}
	if want := []string{"same", "same_2", "same", "same_2"}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
}
