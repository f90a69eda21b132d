package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// shop provides all dependencies of an executor: one server with one tool.
type shop struct {
	calls  int
	answer string
	pinned error
	rules  *Ruleset
	own    Toolset // of the server agents
}

func (s *shop) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

func (s *shop) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	s.calls++
	if c.Tool == "broken" {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "no connection")
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(s.answer)}}, nil
}

func (s *shop) Ready(context.Context, tenon.Run) error { return nil }

func (s *shop) Toolset(_, server, _ string) (Toolset, error) {
	switch server {
	case "shop":
		return Plain(s), nil
	case "agents":
		return s.own, nil
	}
	return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is not configured any more", server)
}

func (s *shop) ServerFor(server, _ string) string { return server }

func (s *shop) Identify(_ context.Context, _, server, remote string) (Identity, error) {
	return Identity{ID: policy.ID{Server: "project:" + server, Remote: remote}, Target: "sha256:now"}, nil
}

func (s *shop) Overlay(context.Context, tenon.Run, string) (servers.Overlay, error) {
	return servers.Overlay{}, nil
}

func (s *shop) Ruleset() *Ruleset { return s.rules }

func (s *shop) Prepare(context.Context, string, *agent.DecideCommand) (catalog.Prepared, error) {
	return catalog.Prepared{}, nil
}

func (s *shop) CheckResult(context.Context, string, *agent.ToolCommand, json.RawMessage) error {
	return nil
}

func (s *shop) Facts(context.Context, tenon.Run, string, *tenon.Tool, json.RawMessage) (*policy.Facts, error) {
	return &policy.Facts{}, nil
}

func (s *shop) Protected(*tenon.Tool, json.RawMessage) string { return "" }

func (s *shop) CheckCall(context.Context, pins.Call) error { return s.pinned }

func (s *shop) IsNew(context.Context, *tenon.Tool) (bool, error) { return false, nil }

func newShop(t *testing.T) (*shop, *Executor) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	run := tenon.Run{ID: "run_1", Session: "ses_1", Core: agent.Version, State: tenon.RunWorking,
		Created: time.Unix(1, 0), Updated: time.Unix(1, 0)}
	first := tenon.Event{Run: run.ID, Seq: 1, Time: run.Created, Kind: tenon.EventRun, Data: json.RawMessage(`{}`)}
	if err := db.Append(t.Context(), store.Append{Create: &run, Run: run.ID, State: run.State,
		Events: []tenon.Event{first}}); err != nil {
		t.Fatal(err)
	}
	rules := &policy.Rules{}
	if err := rules.Compile(); err != nil {
		t.Fatal(err)
	}
	s := &shop{answer: "three euros", rules: &Ruleset{Layers: policy.NewLayers(policy.Layer{Name: "project",
		Rules: rules})}}
	access := func(context.Context, tenon.Run, *agent.ToolCommand, servers.Overlay) (string, error) { return "", nil }
	tables := func(context.Context, engine.Attempt, *agent.ToolCommand, *tenon.Result) ([]tenon.Table, error) {
		return nil, nil
	}
	return s, New(Config{Store: db, Redactor: &tenon.Redactor{}, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Tools: s,
		Rules: s, Pins: s, Tables: tables, Access: access, Trace: func(string, string) string { return "" },
		Server: func(string) servers.Config { return servers.Config{}.WithDefaults() }})
}

// call executes a tool command and returns its event.
func call(t *testing.T, x *Executor, step string, c agent.ToolCommand) tenon.Event {
	t.Helper()
	a := engine.Attempt{Command: tenon.Command{Step: step, Kind: agent.CommandTool, Local: &c}, Attempt: 1,
		Row: tenon.Run{ID: "run_1", Session: "ses_1", Core: agent.Version}}
	events, err := x.Do(t.Context(), "run_1", a, func(tenon.Event) {})
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	return events[0]
}

func TestTool(t *testing.T) {
	for name, tt := range map[string]struct {
		command agent.ToolCommand
		answer  string
		pinned  error
		kind    string
		want    string // part of the event's data
		calls   int
	}{
		"a result": {command: agent.ToolCommand{Server: "shop", Remote: "price"},
			kind: agent.EventResult, want: "three euros", calls: 1},
		"a large result": {command: agent.ToolCommand{Server: "shop", Remote: "price"},
			answer: strings.Repeat("x ",
				1<<20), kind: agent.EventResult, want: "[truncated, full result: artifact ", calls: 1},
		"a failure": {command: agent.ToolCommand{Server: "shop", Remote: "broken"},
			kind: agent.EventFailed, want: "no connection", calls: 1},
		"no such server": {command: agent.ToolCommand{Server: "bank", Remote: "price"},
			kind: agent.EventFailed, want: "is not configured any more"},
		"another target": {command: agent.ToolCommand{Server: "shop", Remote: "price", Target: "sha256:then"},
			kind: agent.EventFailed, want: "starts or calls something else"},
		"a changed tool": {command: agent.ToolCommand{Server: "shop", Remote: "price"},
			pinned: tenon.Errorf(tenon.CodeDenied, "it changed"), kind: agent.EventFailed, want: "it changed"},
		"the same target": {command: agent.ToolCommand{Server: "shop", Remote: "price", Target: "sha256:now"},
			kind: agent.EventResult, want: "three euros", calls: 1},
		"no record of attempts": {command: agent.ToolCommand{Server: "shop", Remote: "price", Allowed: true},
			kind: agent.EventResult, want: "three euros", calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, x := newShop(t)
			s.pinned = tt.pinned
			s.answer = cmp.Or(tt.answer, s.answer)
			tt.command.Timeout = time.Minute
			e := call(t, x, "1.0", tt.command)
			if e.Kind != tt.kind || !strings.Contains(string(e.Data), tt.want) {
				t.Errorf("%s: %.300s", e.Kind, e.Data)
			}
			if s.calls != tt.calls {
				t.Errorf("%d calls, want %d", s.calls, tt.calls)
			}
		})
	}
}

// TestKeptResult checks that an equal call gets the kept result, and a different call does not.
func TestKeptResult(t *testing.T) {
	s, x := newShop(t)
	c := agent.ToolCommand{Server: "shop", Remote: "price", Timeout: time.Minute, Arguments: json.RawMessage(`{"a":1}`),
		Cache: &agent.Caching{TTL: time.Hour, Scope: policy.ScopeRun}}
	call(t, x, "1.0", c)
	if e := call(t, x, "2.0", c); s.calls != 1 || !strings.Contains(string(e.Data), `"of":"run_1/1.0"`) {
		t.Errorf("%d calls, %s", s.calls, e.Data)
	}
	c.Arguments = json.RawMessage(`{"a":2}`)
	call(t, x, "3.0", c)
	if s.calls != 2 {
		t.Errorf("%d calls, want 2", s.calls)
	}
	x.Forget("ses_1")
	if call(t, x, "4.0", c); s.calls != 3 {
		t.Errorf("%d calls after the session was forgotten, want 3", s.calls)
	}
}

// own is a toolset whose calls start other runs.
type own struct{ began []string }

func (o *own) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

func (o *own) Call(_ context.Context, s *Step) ([]tenon.Event, error) {
	c, err := s.Child()
	if err != nil {
		return nil, err
	}
	o.began = append(o.began, s.Row.ID+"/"+s.Step+" "+c.Agent)
	return []tenon.Event{{Step: s.Step, Kind: agent.EventResult}}, nil
}

// TestDispatch checks that the steps for a server go to the server's toolset, and that a step of an unknown kind fails.
func TestDispatch(t *testing.T) {
	agents := &own{}
	for name, tt := range map[string]struct {
		kind   string // of the command
		server string
		want   string // kind of the event
		text   string
	}{
		"an agent":                    {agent.CommandChild, "agents", agent.EventResult, ""},
		"a handoff":                   {agent.CommandHandoff, "agents", agent.EventResult, ""},
		"a server as an agent":        {agent.CommandChild, "shop", agent.EventFailed, "a tool of another kind"},
		"an agent as a server":        {agent.CommandTool, "agents", agent.EventFailed, "a tool of another kind"},
		"an agent that is not there":  {agent.CommandChild, "bank", agent.EventFailed, "is not configured any more"},
		"a handoff that is not there": {agent.CommandHandoff, "bank", agent.EventFailed, "is not configured any more"},
	} {
		t.Run(name, func(t *testing.T) {
			agents.began = nil
			s, x := newShop(t)
			s.own = agents
			data := tenon.EventData(map[string]any{"name": "ask", "server": tt.server, "agent": "clerk",
				"remote_name": "clerk"})
			a := engine.Attempt{Command: tenon.Command{Step: "1.0", Kind: tt.kind, Data: data}, Attempt: 1,
				Row: tenon.Run{ID: "run_1", Session: "ses_1", Core: agent.Version}}
			events, err := x.Do(t.Context(), "run_1", a, func(tenon.Event) {})
			if err != nil || len(events) != 1 || events[0].Kind != tt.want ||
				!strings.Contains(string(events[0].Data), tt.text) {
				t.Fatalf("%+v, %v", events, err)
			}
			if began := len(agents.began) == 1 && agents.began[0] == "run_1/1.0 clerk"; began != (tt.text == "") ||
				s.calls > 0 {
				t.Errorf("began %q, %d calls of the shop", agents.began, s.calls)
			}
		})
	}
}

func TestUnknownCommand(t *testing.T) {
	_, x := newShop(t)
	_, err := x.Do(t.Context(), "run_1", engine.Attempt{Command: tenon.Command{Step: "1", Kind: "dance"}},
		func(tenon.Event) {})
	if tenon.ErrorCode(err) != tenon.CodeInternal {
		t.Error(err)
	}
}
