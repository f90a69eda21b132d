package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// namedTools is a toolset of tools, each with a remote name and a name.
type namedTools [][2]string

func (n namedTools) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	var list []tenon.Tool
	for _, t := range n {
		list = append(list, tenon.Tool{Remote: t[0], Name: t[1], Description: "d", Input: json.RawMessage(`{"type":"object"}`),
			Annotations: tenon.Annotations{ReadOnly: &yes}})
	}
	return list, nil
}

func (n namedTools) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("called " + c.Tool)}}, nil
}

func openSeeds(t *testing.T, cfg host.Config) *host.Host {
	t.Helper()
	cfg.Home, cfg.LookupEnv = t.TempDir(), func(string) (string, bool) { return "", false }
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func toolNames(t *testing.T, h *host.Host) (names []string, problems []host.Problem) {
	t.Helper()
	s, problems, err := h.Tools().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.Tools() {
		names = append(names, tool.Name+"="+tool.Server+"."+tool.Remote)
	}
	return names, problems
}

func serverTool(name string) mcp.ServerTool {
	return mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"` + name + `","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"x"}]}`), nil
		}}
}

// TestRP16Panics checks that a panic in code of the program fails the listing or the call, but never ends the process.
func TestRP16Panics(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{serverTool("a"), serverTool("b")}})
	t.Run("RP-16 a transform", func(t *testing.T) {
		bad := func(tool tenon.Tool) *tenon.Tool {
			if tool.Remote == "a" {
				panic("oops")
			}
			return &tool
		}
		h := openSeeds(t, host.Config{})
		if err := h.Servers().Add(t.Context(), "s", servers.Config{URL: url, Transform: []host.Transform{{Func: bad}}}); err != nil {
			t.Fatal(err)
		}
		names, problems := toolNames(t, h)
		if diff := cmp.Diff([]string{"b=s.b"}, names); diff != "" {
			t.Error(diff)
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "transform[0]: the function panicked: oops") {
			t.Errorf("problems %v", problems)
		}
	})
	t.Run("RP-16 a filter that is nil", func(t *testing.T) {
		var m map[string]int
		h := openSeeds(t, host.Config{})
		err := h.Servers().Add(t.Context(), "s", servers.Config{URL: url, Transform: []host.Transform{{Func: func(tool tenon.Tool) *tenon.Tool {
			m[tool.Remote]++ // a nil map
			return &tool
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		if names, problems := toolNames(t, h); len(names) != 0 || len(problems) != 2 {
			t.Errorf("%v, %v", names, problems)
		}
	})
	t.Run("RP-16 the maker of a wrapper", func(t *testing.T) {
		h := openSeeds(t, host.Config{Toolsets: map[string]tenon.Toolset{"good": namedTools{{"g", ""}}, "bad": namedTools{{"b", ""}}},
			Wrap: func(server string, s tenon.Toolset) tenon.Toolset {
				if server == "bad" {
					panic("oops")
				}
				return nil
			}})
		names, problems := toolNames(t, h)
		if diff := cmp.Diff([]string{"g=good.g"}, names); diff != "" {
			t.Error(diff)
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "the program's function Wrap panicked") {
			t.Errorf("problems %v", problems)
		}
	})
	t.Run("RP-16 a wrapper", func(t *testing.T) {
		h := openSeeds(t, host.Config{Toolsets: map[string]tenon.Toolset{"s": namedTools{{"g", ""}}},
			Wrap: func(_ string, s tenon.Toolset) tenon.Toolset { return panics{s} }})
		toolNames(t, h)
		r, _, err := host.CallTool(t.Context(), h, "g", nil, nil)
		if err != nil || !r.IsError {
			t.Errorf("%v, %v", r, err)
		}
	})
	t.Run("RP-16 a listing", func(t *testing.T) {
		h := openSeeds(t, host.Config{Toolsets: map[string]tenon.Toolset{"s": namedTools{{"g", ""}}},
			Wrap: func(string, tenon.Toolset) tenon.Toolset { return (*nilToolset)(nil) }})
		if names, problems := toolNames(t, h); len(names) != 0 || len(problems) != 1 {
			t.Errorf("%v, %v", names, problems)
		}
	})
}

type panics struct{ tenon.Toolset }

func (panics) Call(context.Context, tenon.Call) (*tenon.Result, error) { panic("oops") }

type nilToolset struct{ list []tenon.Tool }

func (n *nilToolset) Tools(context.Context) ([]tenon.Tool, error) { return n.list, nil }
func (n *nilToolset) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return nil, errors.New("never")
}

// TestRP16Names checks that the tool names that the program sets are used, and that existing names stay the same when a
// server is added.
func TestRP16Names(t *testing.T) {
	ctx := context.Background()
	h := openSeeds(t, host.Config{Toolsets: map[string]tenon.Toolset{"files": namedTools{{"read_file", "mcp_read_file"}, {"", "only_name"}, {"list", ""}}}})
	names, _ := toolNames(t, h)
	want := []string{"list=files.list", "mcp_read_file=files.read_file", "only_name=files.only_name"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatal(diff)
	}
	if r, _, err := host.CallTool(ctx, h, "mcp_read_file", nil, nil); err != nil || r.Text() != "called read_file" {
		t.Errorf("%v, %v", r, err)
	}
	if err := h.Tools().Add(ctx, "second", namedTools{{"list", ""}, {"x", "mcp_read_file"}, {"second_list", ""}}); err != nil {
		t.Fatal(err)
	}
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{serverTool("list"), serverTool("second_list"), serverTool("own")}})
	if err := h.Servers().Add(ctx, "third", servers.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	after, problems := toolNames(t, h)
	for _, n := range want {
		if !slices.Contains(after, n) {
			t.Errorf("RP-16: %s is gone: %v", n, after)
		}
	}
	for _, n := range []string{"second_mcp_read_file=second.x", "third_list=third.list", "third_second_list=third.second_list", "own=third.own"} {
		if !slices.Contains(after, n) {
			t.Errorf("%s is missing: %v", n, after)
		}
	}
	if len(after) != 9 || len(problems) != 0 {
		t.Errorf("%v, %v", after, problems)
	}
	if err := h.Servers().Remove(ctx, "third"); err != nil {
		t.Fatal(err)
	}
	if names, _ = toolNames(t, h); len(names) != 6 {
		t.Errorf("%v", names)
	}
}

// TestRP16AddChecks checks that Add checks the tool names in rules as Open does, and that names of disabled servers are
// treated as in use.
func TestRP16AddChecks(t *testing.T) {
	ctx := context.Background()
	no := false
	cfg := &config.Config{Servers: map[string]servers.Config{"off": {Command: "x", Enabled: &no}},
		Policy: policy.Config{Rules: []policy.Rule{{When: `tool.name == "g"`, Verdict: "deny"}}}}
	h := openSeeds(t, host.Config{Config: cfg, Toolsets: map[string]tenon.Toolset{"one": namedTools{{"g", ""}}}})
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{serverTool("a")}})
	for name, err := range map[string]error{
		"a toolset": h.Tools().Add(ctx, "two", namedTools{{"h", ""}}),
		"a server":  h.Servers().Add(ctx, "two", servers.Config{URL: url}),
	} {
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "tool.name is ambiguous") {
			t.Errorf("RP-16 %s: %v", name, err)
		}
	}
	if names, _ := toolNames(t, h); len(names) != 1 {
		t.Errorf("%v", names)
	}
	for name, err := range map[string]error{
		"a toolset": h.Tools().Add(ctx, "off", namedTools{{"h", ""}}),
		"a server":  h.Servers().Add(ctx, "off", servers.Config{URL: url}),
	} {
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "disabled") {
			t.Errorf("RP-16 %s: %v", name, err)
		}
	}
	_, err := host.Open(ctx, host.Config{Home: t.TempDir(), Config: &config.Config{Servers: cfg.Servers}, Toolsets: map[string]tenon.Toolset{"off": namedTools{}}})
	if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("RP-16 Open: %v", err)
	}
}

// TestRP16Notify checks that the program is notified of changed lists and of reports of servers, even if its function
// panics.
func TestRP16Notify(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := overHTTP(t)
	got := make(chan servers.Notification, 100)
	var once sync.Once
	h := openSeeds(t, host.Config{Notify: func(n servers.Notification) {
		got <- n
		once.Do(func() { panic("oops") })
	}})
	if err := h.Servers().Add(ctx, "t", servers.Config{URL: url, LogLevel: "debug"}); err != nil {
		t.Fatal(err)
	}
	toolNames(t, h)
	for _, tool := range []string{"log", "mutate"} {
		if _, _, err := host.CallTool(ctx, h, tool, nil, nil); err != nil && tenon.ErrorCode(err) != tenon.CodeWaiting {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for !(seen["notifications/message"] && seen["notifications/tools/list_changed"] && seen["tools +1"]) {
		select {
		case n := <-got:
			if n.Server != "t" {
				t.Errorf("server %q", n.Server)
			}
			seen[n.Method] = true
			if n.List == "tools" && len(n.Added) == 1 {
				seen["tools +1"] = true
			}
		case <-time.After(100 * time.Millisecond):
			toolNames(t, h) // the next use loads the list
		case <-ctx.Done():
			t.Fatalf("seen only %v", seen)
		}
	}
}
