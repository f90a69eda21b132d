package host_test

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// exiting is a toolset whose methods can end their goroutine, as t.Fatal does.
type exiting struct {
	tenon.Toolset
	lists, calls bool
}

func (e exiting) Tools(ctx context.Context) ([]tenon.Tool, error) {
	if e.lists {
		runtime.Goexit()
	}
	return e.Toolset.Tools(ctx)
}

func (e exiting) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	if e.calls {
		runtime.Goexit()
	}
	return e.Toolset.Call(ctx, c)
}

type exitingModel struct{ tenon.Model }

func (exitingModel) Generate(context.Context, *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(func(tenon.Delta, error) bool) { runtime.Goexit() }
}

// TestGoexit gives a host code that calls runtime.Goexit. Its run goes on or fails, as after a panic; it never hangs.
func TestGoexit(t *testing.T) {
	yes := true
	set := fixed{{Remote: "look", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}
	for name, tt := range map[string]struct {
		set  func(*host.Config)
		want string // in the result of the call, or in the error of the run
	}{
		"function": {func(c *host.Config) {
			c.Functions = []host.Function{host.NewFunction("look", "", func(context.Context, struct{}) (string, error) {
				runtime.Goexit()
				return "", nil
			}).ReadOnly()}
		}, "the tool failed"},
		"toolset call": {func(c *host.Config) { c.Toolsets["mine"] = exiting{Toolset: set, calls: true} }, "the tool failed"},
		"toolset list": {func(c *host.Config) { c.Toolsets["mine"] = exiting{Toolset: set, lists: true} }, "look"},
		"wrapper": {func(c *host.Config) {
			c.Toolsets["mine"] = set
			c.Wrap = func(_ string, t tenon.Toolset) tenon.Toolset { return exiting{Toolset: t, calls: true} }
		}, "the tool failed"},
		"Wrap": {func(c *host.Config) {
			c.Toolsets["mine"] = set
			c.Wrap = func(string, tenon.Toolset) tenon.Toolset { runtime.Goexit(); return nil }
		}, "look"},
		"Approve": {func(c *host.Config) {
			c.Toolsets["mine"], c.Config.Policy.Defaults.Approval.Mode = set, "always"
			c.Approve = func(context.Context, host.Approval) (r agent.Ruling, err error) { runtime.Goexit(); return }
		}, "function Approve ended its goroutine"},
		"Observe": {func(c *host.Config) {
			c.Toolsets["mine"] = set
			c.Observe = func(tenon.Run, []tenon.Event) { runtime.Goexit() }
		}, "ok"},
		"model": {func(c *host.Config) { c.Models["m"] = exitingModel{c.Models["m"]} }, "ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			cfg := host.Config{Config: &config.Config{}, Home: t.TempDir(), Model: "m", Toolsets: map[string]tenon.Toolset{},
				Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
					last := req.Messages[len(req.Messages)-1]
					if last.Role == tenon.RoleUser {
						return calls("look {}"), nil
					}
					b, err := json.Marshal(last)
					got = string(b)
					return says("done"), err
				})}}
			tt.set(&cfg)
			h, err := host.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if _, err := host.Ask(t.Context(), h, host.Question{Text: "q"}); err != nil {
				got += err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestGoexitOfATransform adds a server with a function that calls runtime.Goexit for one tool. Only that tool is left
// out, with a problem.
func TestGoexitOfATransform(t *testing.T) {
	entry, h := addAndGreet(t), emptyHost(t)
	entry.Transform = []host.Transform{{Func: func(tool tenon.Tool) *tenon.Tool {
		if tool.Remote == "add" {
			runtime.Goexit()
		}
		return &tool
	}}}
	mustDo(t, h.Servers().Add(t.Context(), "one", entry))
	offers(t, h, "the other tool", "greet=one.greet")
	if _, problems := offered(t, h); len(problems) != 1 || !strings.Contains(problems[0], "tool 'add' of server 'one' is left out: transform[0]: the function ended its goroutine") {
		t.Errorf("problems %q", problems)
	}
}

// TestLeftOutToolsAreProblems lists tools of a program that cannot be offered. Each is a problem that names it.
func TestLeftOutToolsAreProblems(t *testing.T) {
	entry, h := addAndGreet(t), emptyHost(t)
	mustDo(t, h.Tools().Add(t.Context(), "mine", fixed{{Remote: "cut", Input: json.RawMessage(`{"type":`)},
		{Remote: "typed", Input: json.RawMessage(`{"type":"nosuch"}`)}, {Remote: "one"}, {Remote: "one", Description: "two"}, {}}))
	offers(t, h, "what is sound", "one=mine.one")
	_, problems := offered(t, h)
	for _, want := range []string{"tool 'cut' of server 'mine' is left out", "tool 'typed' of server 'mine' is left out",
		"tool 'one' of server 'mine' is left out: it is the second one", "tool '' of server 'mine' is left out: its name is empty"} {
		if !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%q is missing in %q", want, problems)
		}
	}
	entry.Transform = []host.Transform{{Func: func(tool tenon.Tool) *tenon.Tool { tool.Name = ""; return &tool }}}
	mustDo(t, h.Servers().Add(t.Context(), "emptied", entry))
	offers(t, h, "no names", "one=mine.one")
	_, problems = offered(t, h)
	if !strings.Contains(strings.Join(problems, "\n"), "tool 'add' of server 'emptied' is left out: its name is empty") {
		t.Errorf("%q", problems)
	}
}
