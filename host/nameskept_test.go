package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// addAndGreet serves the tools add and greet, and returns the entry of their server.
func addAndGreet(t *testing.T) servers.Config {
	t.Helper()
	var tools []mcp.ServerTool
	for _, name := range []string{"add", "greet"} {
		tools = append(tools, mcp.ServerTool{Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
			Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				return json.RawMessage(`{"content":[]}`), nil
			}})
	}
	return servers.Config{URL: servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: tools})}
}

// offered returns the tools as NAME=SERVER.REMOTE, without tenon's own, and the problems.
func offered(t *testing.T, h *host.Host) (tools, problems []string) {
	t.Helper()
	list, wrong, err := h.Tools().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		tools = append(tools, tool.Name+"="+tool.Server+"."+tool.Remote)
	}
	for _, p := range wrong {
		problems = append(problems, p.Err.Error())
	}
	return tools, problems
}

func offers(t *testing.T, h *host.Host, when, want string) {
	t.Helper()
	if got, _ := offered(t, h); strings.Join(got, " ") != want {
		t.Errorf("%s: %s, want %s", when, strings.Join(got, " "), want)
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func emptyHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestAddedServerThatRefusesCollisions adds a server whose entry has on_collision: error. Only its own tools are left
// out, and the tools that were there before keep their names.
func TestAddedServerThatRefusesCollisions(t *testing.T) {
	entry, h := addAndGreet(t), emptyHost(t)
	mustDo(t, h.Servers().Add(t.Context(), "one", entry))
	mustDo(t, h.Servers().Add(t.Context(), "two", entry))
	before := "add=one.add greet=one.greet two_add=two.add two_greet=two.greet"
	offers(t, h, "before", before)
	entry.Naming.OnCollision = "error"
	mustDo(t, h.Servers().Add(t.Context(), "three", entry))
	offers(t, h, "after", before)
	_, problems := offered(t, h)
	if len(problems) != 2 || !strings.Contains(problems[0], "tool 'add' of server 'three' is left out") {
		t.Errorf("problems %q", problems)
	}
	mustDo(t, h.Servers().Remove(t.Context(), "three"))
	offers(t, h, "without it", before)
	if _, problems := offered(t, h); len(problems) > 0 {
		t.Errorf("problems of a removed server: %q", problems)
	}
}

// TestAddedServerWithSuffixes adds servers with on_collision: suffix in the reverse order of their names. The number of
// a tool does not change with a later server.
func TestAddedServerWithSuffixes(t *testing.T) {
	entry, h := addAndGreet(t), emptyHost(t)
	entry.Include, entry.Naming.OnCollision = []string{"add"}, "suffix"
	for _, name := range []string{"c", "b", "a"} {
		mustDo(t, h.Servers().Add(t.Context(), name, entry))
	}
	offers(t, h, "three", "add=c.add add_1=b.add add_2=a.add")
	mustDo(t, h.Servers().Remove(t.Context(), "b"))
	offers(t, h, "without b", "add=c.add add_2=a.add")
}

// TestRemoveKeepsNames checks that a name never reaches the tool of another server after a removal, for servers and for
// toolsets of the program, and that a server that comes back has its names again.
func TestRemoveKeepsNames(t *testing.T) {
	entry := addAndGreet(t)
	for kind, add := range map[string]func(*host.Host, string) error{
		"servers": func(h *host.Host, name string) error { return h.Servers().Add(t.Context(), name, entry) },
		"toolsets": func(h *host.Host, name string) error {
			return h.Tools().Add(t.Context(), name, fixed{{Remote: "add"}, {Remote: "greet"}})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			h := emptyHost(t)
			for _, name := range []string{"plain", "second", "third"} {
				mustDo(t, add(h, name))
			}
			rest := "second_add=second.add second_greet=second.greet third_add=third.add third_greet=third.greet"
			all := "add=plain.add greet=plain.greet " + rest
			offers(t, h, "before", all)
			mustDo(t, h.Servers().Remove(t.Context(), "plain"))
			offers(t, h, "removed", rest)
			if known, err := h.Tools().Known(t.Context()); err != nil || slices.Contains(known.Names(), "add") {
				t.Errorf("known: %v %v", known.Names(), err)
			}
			mustDo(t, add(h, "fourth"))
			offers(t, h, "with a new one", "fourth_add=fourth.add fourth_greet=fourth.greet "+rest)
			mustDo(t, h.Servers().Remove(t.Context(), "fourth"))
			mustDo(t, add(h, "plain"))
			offers(t, h, "back", all)
			for _, name := range []string{"plain", "third", "second"} {
				mustDo(t, h.Servers().Remove(t.Context(), name))
			}
			offers(t, h, "none", "")
			mustDo(t, add(h, "third"))
			offers(t, h, "the last one is back", "third_add=third.add third_greet=third.greet")
		})
	}
}

// TestRemoveKeepsNamesAtAStart removes one of two toolsets that were there from the start. Both had the name of the
// server in front, which the other one keeps.
func TestRemoveKeepsNamesAtAStart(t *testing.T) {
	set := fixed{{Remote: "add"}}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"one": set, "two": set}})
	mustDo(t, err)
	defer h.Close()
	offers(t, h, "before", "one_add=one.add two_add=two.add")
	mustDo(t, h.Servers().Remove(t.Context(), "one"))
	offers(t, h, "after", "two_add=two.add")
	mustDo(t, h.Tools().Add(t.Context(), "one", set))
	offers(t, h, "back", "one_add=one.add two_add=two.add")
}

// TestRemovedNameInAQuestion asks with a toolset of the question that has the name of a removed one. The tools of the
// host keep their names in that run.
func TestRemovedNameInAQuestion(t *testing.T) {
	set, seen := fixed{{Remote: "add"}}, []string(nil)
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Toolsets: map[string]tenon.Toolset{"two": set},
		Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
			seen = names(req)
			return says("done"), nil
		})}})
	mustDo(t, err)
	defer h.Close()
	mustDo(t, h.Tools().Add(t.Context(), "one", set))
	offers(t, h, "before", "add=two.add one_add=one.add")
	mustDo(t, h.Servers().Remove(t.Context(), "one"))
	ask(t, h, host.Question{Text: "q", Toolsets: map[string]tenon.Toolset{"one": set}})
	if !slices.Contains(seen, "add") || !slices.Contains(seen, "one_add") {
		t.Errorf("the model saw %v", seen)
	}
}

// TestAddedServerThatIsDisabled adds an entry that is disabled. Its program must not start.
func TestAddedServerThatIsDisabled(t *testing.T) {
	h, started := emptyHost(t), filepath.Join(t.TempDir(), "started")
	err := h.Servers().Add(t.Context(), "off", servers.Config{Command: "sh", Args: []string{"-c", "echo > '" + started + "'"},
		Enabled: new(false)})
	if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "servers.off.enabled") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the program was started")
	}
	offers(t, h, "disabled", "")
}
