package peers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// made is a server in testdata made with an official SDK. The servers have the same tools in each language.
type made struct {
	name, era string
	tools     []string
	stdio     []string // command of the server
	url       string   // URL of a server that does not use stdio
	transport string   // empty if the URL determines the transport
}

// testPython calls servers of the official Python SDK: version 2 with its three transports, and version 1
// also with WebSocket, which later versions no longer support.
func (p *peers) testPython(t *testing.T) {
	script := absolute(t, "testdata", "python.py")
	for _, version := range []string{"1", "2"} {
		python := filepath.Join(filepath.Dir(p.modules), "python"+version, "bin", "python")
		if _, err := os.Stat(python); err != nil {
			t.Fatalf("a peer is missing, make peers installs it: %v", err)
		}
		eras := map[string]string{"stdio": "2025-11-25", "sse": "2025-11-25", "http": "2025-11-25", "ws": "2025-11-25"}
		paths := map[string]string{"sse": "/sse", "http": "/mcp"}
		if version == "1" {
			paths["ws"] = "/ws"
		} else {
			eras["stdio"], eras["http"] = "2026-07-28", "2026-07-28"
		}
		m := made{name: "python " + version, tools: []string{"add", "count", "echo", "fail"}}
		t.Run(m.name+" stdio", func(t *testing.T) {
			m.era, m.stdio = eras["stdio"], []string{python, script, "stdio"}
			p.call(t, m)
			p.late(t, m)
		})
		m.stdio = nil
		for how, path := range paths {
			t.Run(m.name+" "+how, func(t *testing.T) {
				m, port := m, clitest.FreePort(t)
				background(t, nil, python, script, how, port)
				answers(t, "http://127.0.0.1:"+port+"/nothing")
				m.era, m.url = eras[how], "http://127.0.0.1:"+port+path
				switch how {
				case "sse":
					m.transport = how
				case "ws":
					m.url = "ws" + strings.TrimPrefix(m.url, "http")
				}
				p.call(t, m)
			})
		}
	}
}

// testTypeScript calls servers of the official TypeScript SDK: one of version 2 in both eras, and the
// examples of version 1.
func (p *peers) testTypeScript(t *testing.T) {
	p.bin(t, "@modelcontextprotocol", "node", "dist", "index.mjs")
	m := made{tools: []string{"echo", "fail", "grow"}, era: "2026-07-28"}
	server := []string{p.node, absolute(t, "testdata", "typescript.mjs"), p.modules}
	t.Run("2 stdio", func(t *testing.T) {
		m := m
		m.stdio = append(server, "stdio")
		p.call(t, m)
		p.late(t, m)
	})
	t.Run("2 http", func(t *testing.T) {
		port := clitest.FreePort(t)
		background(t, nil, append(server, "http", port)...)
		m.url = "http://127.0.0.1:" + port + "/mcp"
		answers(t, m.url)
		p.call(t, m)
	})
	t.Run("examples", p.testExamples)
}

// testMCPGo calls the servers of mcp-go in internal/rivals.
func (p *peers) testMCPGo(t *testing.T) {
	rivals := clitest.Build(t, filepath.Join("..", "rivals"), ".")
	m := made{tools: []string{"echo", "stat"}, era: "2026-07-28"}
	t.Run("stdio", func(t *testing.T) {
		m := m
		m.stdio = []string{rivals, "server", "mcp-go-stdio"}
		p.call(t, m)
		p.late(t, m)
	})
	t.Run("http", func(t *testing.T) {
		m.url = serveHTTP(t, rivals, "mcp-go-http")
		p.call(t, m)
	})
}

// call tests the features that all these servers have.
func (p *peers) call(t *testing.T, m made) {
	s := p.shell(t)
	entry := map[string]any{"url": m.url}
	if m.transport != "" {
		entry["transport"] = m.transport
	}
	flags := []string{"--url", m.url}
	if m.transport != "" {
		flags = append(flags, "--transport", m.transport)
	}
	if m.stdio != nil {
		entry, flags = command(m.stdio), append([]string{"--"}, m.stdio...)
	}
	with := func(args ...string) []string { return append(args, flags...) }
	s.offers(t, m.tools, flags...)
	for _, text := range []string{"grüezi", "", strings.Repeat("lang\n", 20_000)} {
		if o := s.OK(t, with("tools", "call", "echo", "--params", `{"text":`+strconv.Quote(text)+
			`}`)...); o.Out != text+"\n" && o.Out != text {
			t.Errorf("%d bytes came back as %d", len(text), len(o.Out))
		}
	}
	has := map[string]bool{}
	for _, name := range m.tools {
		has[name] = true
	}
	if has["add"] {
		if o := s.OK(t, with("tools", "call", "add", "a:=9007199254740992", "b:=1")...); o.Out != "9007199254740993\n" {
			t.Errorf("a number was changed\n%s", o)
		}
	}
	if has["fail"] {
		if o := s.Run(t, with("tools", "call", "fail")...); o.Status != 5 ||
			!strings.Contains(o.ErrOut, "it went wrong") {
			t.Errorf("want the tool's own text and status 5\n%s", o)
		}
	}
	if has["count"] {
		o := s.OK(t, with("tools", "call", "count", "to:=50", "-o", "jsonl")...)
		lines := clitest.Lines[struct{ Kind string }](t, o)
		if len(lines) < 2 || lines[0].Kind != "progress" || lines[len(lines)-1].Kind != "result" {
			t.Errorf("no progress\n%s", o)
		}
	}
	type status struct{ State, Protocol string }
	o := s.OK(t, with("servers", "test", "-o", "json")...)
	if got := clitest.Decode[status](t, o); got.State != "ready" || got.Protocol != m.era {
		t.Errorf("%+v, want ready at %s", got, m.era)
	}
	// Several calls of one run share one connection.
	s.config(t, map[string]any{"servers": map[string]any{"peer": entry},
		"policy": map[string]any{"defaults": map[string]any{"approval": "never"}}})
	steps := s.WriteFile(t, "steps.yaml", "steps:\n  - calls:\n"+
		strings.Repeat("      - {name: echo, arguments: {text: a}}\n", 4)+"  - text: done\n")
	if o := s.OK(t, "run", "-c", "tenon.yaml", "--model", "script:"+steps, "go"); strings.TrimSpace(o.Out) != "done" {
		t.Errorf("no answer\n%s", o)
	}
}

// late checks that tenon uses a server that starts slowly in the server's own era, even though the server received
// initialize before it was able to respond.
func (p *peers) late(t *testing.T, m made) {
	s := p.shell(t)
	slow := append([]string{"--", "sh", "-c", `sleep 2; exec "$@"`, "sh"}, m.stdio...)
	o := s.OK(t, append([]string{"tools", "call", "echo", "text=late"}, slow...)...)
	if strings.TrimSpace(o.Out) != "late" {
		t.Errorf("no answer\n%s", o)
	}
	type status struct{ State, Protocol string }
	o = s.OK(t, append([]string{"servers", "test", "-o", "json"}, slow...)...)
	if got := clitest.Decode[status](t, o); got.State != "ready" || got.Protocol != m.era {
		t.Errorf("%+v, want ready at %s", got, m.era)
	}
}

func absolute(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
