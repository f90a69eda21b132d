package peers

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testAsks tests the requests of server-everything: forms, URLs, sampling and roots.
func (p *peers) testAsks(t *testing.T) {
	port := clitest.FreePort(t)
	background(t, []string{"PORT=" + port}, p.server(t, "server-everything", "streamableHttp")...)
	url := "http://127.0.0.1:" + port + "/mcp"
	answers(t, url)
	s := p.shell(t)
	script := s.WriteFile(t, "steps.yaml", "steps:\n  - text: Paris\n")
	more := map[string]any{"sampling": "allow", "sampling_model": "m", "roots": []string{s.Dir}}
	entry := func(m map[string]any) map[string]any {
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	s.config(t, map[string]any{
		"servers": map[string]any{
			"stdio": entry(command(p.server(t, "server-everything", "stdio"))),
			"http":  entry(map[string]any{"url": url}),
			"files": with(command(p.server(t, "server-filesystem", "/")), "roots", []string{s.Dir}),
		},
		"models": map[string]any{"m": map[string]any{"provider": "script", "path": script}},
		"policy": map[string]any{"defaults": map[string]any{"approval": "never"}},
	})
	call := func(tool string, args ...string) clitest.Output {
		return s.Run(t, append([]string{"tools", "call", "-c", "tenon.yaml", tool}, args...)...)
	}
	for _, server := range []string{"stdio", "http"} {
		t.Run(server, func(t *testing.T) {
			o := s.OK(t, "tools", "list", "-c", "tenon.yaml", "-o", "json")
			var names []string
			for _, tool := range clitest.Decode[[]struct {
				Server string
				Remote string `json:"remote_name"`
			}](t, o) {
				if tool.Server == server {
					names = append(names, tool.Remote)
				}
			}
			slices.Sort(names)
			want := append(slices.Clone(everythingTools), "get-roots-list", "trigger-sampling-request")
			if slices.Sort(want); !slices.Equal(names, want) {
				t.Errorf("it offers %d tools %q, want %d", len(names), names, len(want))
			}
			if o := call(server+"_trigger-sampling-request", "prompt=capital", "maxTokens:=20"); o.Status != 0 ||
				!strings.Contains(o.Out, "Paris") {
				t.Errorf("sampling\n%s", o)
			}
			if o := call(server + "_get-roots-list"); o.Status != 0 || !strings.Contains(o.Out, s.Dir) {
				t.Errorf("roots\n%s", o)
			}
			if o := call(server + "_trigger-elicitation-request"); o.Status != 0 ||
				!strings.Contains(o.Out, "declined") {
				t.Errorf("a form without a person to answer\n%s", o)
			}
			o = s.answered(t, `{"name":"Ann","email":"ann@x.example"}`, server+"_trigger-elicitation-request")
			if o.Status != 0 || !strings.Contains(o.Out, "Name: Ann") || !strings.Contains(o.Out, "ann@x.example") {
				t.Errorf("a form answered from another process\n%s", o)
			}
			if o := s.answered(t, "", server+"_trigger-url-elicitation", "url=https://x.example/a"); o.Status != 0 ||
				!strings.Contains(o.Out, "accept") {
				t.Errorf("a URL\n%s", o)
			}
			if o := call(server+"_trigger-url-elicitation", "url=https://x.example/b",
				"errorPath:=true"); o.Status != 8 || !strings.Contains(o.ErrOut, "https://") {
				t.Errorf("a URL required before the call\n%s", o)
			}
		})
	}
	t.Run("filesystem takes the roots for its folders", func(t *testing.T) { testFoldersByRoots(t, s) })
}

func testFoldersByRoots(t *testing.T, s shell) {
	// The server requests the roots a moment after its start, and later than that on a loaded machine.
	for _, moment := range []string{"1s", "5s", "25s"} {
		steps := s.WriteFile(t, "files.yaml", "steps:\n  - calls: [{name: list_allowed_directories}]\n"+
			"  - delay: "+moment+
			"\n    calls: [{name: list_directory, arguments: {path: /etc}}]\n"+
			"  - calls: [{name: list_allowed_directories}]\n  - text: done\n")
		s.OK(t, "run", "-c", "tenon.yaml", "--model", "script:"+steps, "go")
		o := s.OK(t, "runs", "show", "-1", "-c", "tenon.yaml", "-o", "json")
		calls := clitest.Decode[struct {
			ToolCalls []struct {
				Success bool
				Result  callResult
			} `json:"tool_calls"`
		}](t, o).ToolCalls
		if len(calls) == 3 && !calls[1].Success && strings.Contains(calls[1].Result.Content[0].Text,
			"outside allowed directories") &&
			strings.Contains(calls[2].Result.Content[0].Text, s.Dir) {
			return
		}
		t.Logf("the folder of its command line is still open after %s\n%s", moment, o)
	}
	t.Error("the folder of its command line is still open")
}

// answered calls a tool with --wait and answers its question from another process.
func (s shell) answered(t *testing.T, args string, tool ...string) clitest.Output {
	t.Helper()
	done := make(chan clitest.Output, 1)
	cmd := s.Command(context.Background(), append([]string{"tools", "call", "-c", "tenon.yaml", "--wait"}, tool...)...)
	go func() {
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		o := clitest.Output{Out: out.String(), ErrOut: errs.String()}
		if exit, ok := err.(*exec.ExitError); ok {
			o.Status = exit.ExitCode()
		}
		done <- o
	}()
	for end := time.Now().Add(clitest.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, a := range clitest.Decode[[]struct{ ID string }](t, s.OK(t, "approvals", "list", "-c", "tenon.yaml",
			"-o", "json")) {
			if !strings.Contains(a.ID, "/1.0/q") {
				continue
			}
			allow := []string{"approvals", "allow", a.ID, "-c", "tenon.yaml"}
			if args != "" {
				allow = append(allow, "--args", args)
			}
			s.OK(t, allow...)
			return <-done
		}
	}
	t.Fatal("the question is never listed")
	return <-done
}
