package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// TestFunctions checks the tools that are made from Go functions.
func TestFunctions(t *testing.T) {
	type in struct {
		N    int64  `json:"n"`
		Name string `json:"name,omitempty"`
	}
	fns := []host.Function{
		host.NewFunction("number", "", func(_ context.Context, i in) (map[string]int64, error) { return map[string]int64{"n": i.N}, nil }),
		host.NewFunction("fails", "", func(context.Context, in) (string, error) { return "", errors.New("no luck") }),
		host.NewFunction("panics", "", func(context.Context, *in) (string, error) { panic("boom") }),
		host.NewFunction("raw", "", func(context.Context, struct{}) (*tenon.Result, error) { return tenon.ErrorResult("as it is"), nil }),
		host.NewFunction("list", "", func(context.Context, struct{}) ([]int, error) { return []int{1, 2}, nil }),
	}
	open := func(fns ...host.Function) (*host.Host, error) {
		return host.Open(t.Context(), host.Config{Home: t.TempDir(), Functions: fns, LookupEnv: func(string) (string, bool) { return "", false }})
	}
	h, err := open(fns...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, tt := range []struct {
		name, args, want string
		isError          bool
		code             tenon.Code
	}{
		{"number", `{"n":9007199254740993}`, `{"n":9007199254740993}`, false, ""},
		{"number", `{}`, "", false, tenon.CodeInvalid},
		{"number", `{"n":"1"}`, "", false, tenon.CodeInvalid},
		{"number", `{"n":1,"x":1}`, "", false, tenon.CodeInvalid},
		{"fails", `{"n":1}`, "no luck", true, ""},
		{"panics", `{"n":1}`, "the tool failed", true, ""},
		{"raw", `{}`, "as it is", true, ""},
		{"list", `{}`, "[1,2]", false, ""},
		{"nope", `{}`, "", false, tenon.CodeNotFound},
	} {
		r, _, err := host.CallTool(t.Context(), h, tt.name, json.RawMessage(tt.args), nil)
		switch {
		case tenon.ErrorCode(err) != tt.code:
			t.Errorf("%s %s: %v, want code %q", tt.name, tt.args, err, tt.code)
		case err == nil && (!strings.Contains(r.Text(), tt.want) || r.IsError != tt.isError):
			t.Errorf("%s %s: %q", tt.name, tt.args, r.Text())
		}
	}
	for name, bad := range map[string]host.Function{
		"no struct":    host.NewFunction("f", "", func(context.Context, string) (string, error) { return "", nil }),
		"no JSON":      host.NewFunction("f", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }),
		"empty":        {},
		"nil":          host.NewFunction[struct{}, string]("f", "", nil),
		"a second one": fns[0],
	} {
		if h, err := open(fns[0], bad); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = h.Close()
			}
		}
	}
}

// TestOwnToolsStay checks that tenon's own tools cannot be removed or replaced.
func TestOwnToolsStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.yaml")
	if err := os.WriteFile(file, []byte("kind: workflow\nversion: 1\nname: w\nsteps:\n  - id: a\n    template: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, pack, err := config.ReadWorkflow(file)
	if err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: none, Workflows: map[string]host.Workflow{"w": {Workflow: w, Pack: pack}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Servers().Remove(t.Context(), "workflows"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("the workflows were removed: %v", err)
	}
	if s, _, err := h.Tools().Snapshot(t.Context()); err != nil || !slices.Equal(s.Names(), []string{"w"}) {
		t.Errorf("tools %v, %v", s.Names(), err)
	}
	_, err = host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: none, Toolsets: map[string]tenon.Toolset{"workflow_steps": fixed{}}})
	if tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a toolset with the name of tenon's own: %v", err)
	}
	half := host.Workflow{Workflow: w}
	_, err = host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: none, Workflows: map[string]host.Workflow{"w": half}})
	if tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a workflow without its pack: %v", err)
	}
	if _, err := h.Workflows().Start(t.Context(), host.WorkflowCall{Workflow: half}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a workflow without its pack begins: %v", err)
	}
	asking := flowFile(t, "steps: [{id: first, agent: nobody, message: x}]\nmessage: first\n")
	_, err = host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: none, Workflows: map[string]host.Workflow{"w": asking}})
	if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "step 'first' of workflow 'w'") {
		t.Errorf("a workflow whose agent is not configured: %v", err)
	}
}

// TestAddAndRemove adds and removes toolsets while other goroutines list the tools.
func TestAddAndRemove(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	tools := func() string {
		s, _, err := h.Tools().Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.Names(), " ")
	}
	one := fixed{{Remote: "x", Input: json.RawMessage(`{"type":"object"}`)}}
	for _, step := range []struct {
		do   error
		code tenon.Code
		want string
	}{
		{h.Tools().Add(t.Context(), "a", one), "", "x"},
		{h.Tools().Add(t.Context(), "a", one), tenon.CodeConfig, "x"},
		{h.Tools().Add(t.Context(), "", one), tenon.CodeConfig, "x"},
		{h.Tools().Add(t.Context(), "a b", one), tenon.CodeConfig, "x"},
		{h.Servers().Add(t.Context(), "dead", servers.Config{Command: "no-such-program-of-tenon"}), tenon.CodeUnreachable, "x"},
		{h.Servers().Remove(t.Context(), "artifacts"), tenon.CodeNotFound, "x"},
		{h.Tools().Add(t.Context(), "workflow_steps", one), tenon.CodeConfig, "x"},
		{h.Servers().Remove(t.Context(), "nope"), tenon.CodeNotFound, "x"},
	} {
		if tenon.ErrorCode(step.do) != step.code || tools() != step.want {
			t.Errorf("%v, want code %q; tools %s, want %s", step.do, step.code, tools(), step.want)
		}
	}
	var wg sync.WaitGroup
	for _, name := range []string{"b", "c", "d"} {
		wg.Go(func() {
			for range 20 {
				if err := h.Tools().Add(t.Context(), name, one); err != nil {
					t.Error(err)
				}
				if _, _, err := host.CallTool(t.Context(), h, name+"_x", json.RawMessage(`{}`), nil); err != nil {
					t.Error(err)
				}
				if err := h.Servers().Remove(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := h.Servers().Remove(t.Context(), "a"); err != nil || tools() != "" {
		t.Errorf("%v, tools %s", err, tools())
	}
}
