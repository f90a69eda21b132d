package peers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// everythingTools lists the tools that server-everything offers to a client with form and URL elicitation, which tenon
// declares by default. The server offers two more tools to clients with sampling and roots: see testAsks.
var everythingTools = []string{"echo", "get-annotated-message", "get-env", "get-resource-links",
	"get-resource-reference",
	"get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "simulate-research-query",
	"toggle-simulated-logging", "toggle-subscriber-updates", "trigger-elicitation-request",
	"trigger-long-running-operation",
	"trigger-url-elicitation"}

var filesystemTools = []string{"create_directory", "directory_tree", "edit_file", "get_file_info",
	"list_allowed_directories",
	"list_directory", "list_directory_with_sizes", "move_file", "read_file", "read_media_file", "read_multiple_files",
	"read_text_file", "search_files", "write_file"}

var memoryTools = []string{"add_observations", "create_entities", "create_relations", "delete_entities",
	"delete_observations", "delete_relations", "open_nodes", "read_graph", "search_nodes"}

// callResult is a tools/call result in the output of `tools call -o json`.
type callResult struct {
	Content []struct {
		Type, Text, Data, MimeType string
	}
	StructuredContent json.RawMessage
	IsError           bool
}

// offers checks the tool names in the output of `tools list`, in any order.
func (s shell) offers(t *testing.T, want []string, server ...string) {
	t.Helper()
	o := s.OK(t, append([]string{"tools", "list", "-o", "json"}, server...)...)
	var names []string
	for _, tool := range clitest.Decode[[]struct{ Name string }](t, o) {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("got %d tools %q, want %d: %q", len(names), names, len(want), want)
	}
}

func (p *peers) testStdio(t *testing.T) {
	t.Run("everything", func(t *testing.T) {
		s := p.shell(t)
		s.everything(t, append([]string{"--"}, p.server(t, "server-everything", "stdio")...)...)
	})
	t.Run("filesystem", func(t *testing.T) {
		s := p.shell(t)
		server := append([]string{"--"}, p.server(t, "server-filesystem", s.Dir)...)
		s.offers(t, filesystemTools, server...)
		file := filepath.Join(s.Dir, "a note.txt")
		s.OK(t, append([]string{"tools", "call", "write_file", "path=" + file, "content=käse\nwine\n"}, server...)...)
		if b, err := os.ReadFile(file); err != nil || string(b) != "käse\nwine\n" {
			t.Errorf("the file is %q, %v", b, err)
		}
		if o := s.OK(t, append([]string{"tools", "call", "read_text_file", "path=" + file, "tail:=2"},
			server...)...); o.Out != "wine\n" {
			t.Errorf("not the last line\n%s", o)
		}
		if o := s.OK(t, append([]string{"tools", "call", "list_directory", "path=" + s.Dir},
			server...)...); !strings.Contains(o.Out, "[FILE] a note.txt") {
			t.Errorf("the file is not listed\n%s", o)
		}
		o := s.Run(t, append([]string{"tools", "call", "read_text_file", "path=/etc/hostname"}, server...)...)
		if o.Status != 5 || !strings.Contains(o.ErrOut, "outside allowed directories") {
			t.Errorf("want the tool's own error and status 5\n%s", o)
		}
	})
	t.Run("memory", func(t *testing.T) {
		s := p.shell(t)
		s.offers(t, memoryTools, append([]string{"--"}, p.server(t, "server-memory")...)...)
	})
	t.Run("sequential-thinking", func(t *testing.T) {
		s := p.shell(t)
		server := append([]string{"--"}, p.server(t, "server-sequential-thinking")...)
		s.offers(t, []string{"sequentialthinking"}, server...)
		o := s.OK(t, append([]string{"tools", "call", "sequentialthinking", "thought=one", "nextThoughtNeeded:=true",
			"thoughtNumber:=1", "totalThoughts:=2", "-o", "json"}, server...)...)
		if r := clitest.Decode[callResult](t, o); r.IsError || len(r.Content) != 1 ||
			!strings.Contains(r.Content[0].Text, `"thoughtNumber": 1`) {
			t.Errorf("not the expected thought\n%s", o)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		s := p.shell(t)
		o := s.Run(t, "tools", "list", "--", p.node, filepath.Join(s.Dir, "no-such-server.js"))
		if o.Status != 4 || !strings.Contains(o.ErrOut, "no-such-server") {
			t.Errorf("want status 4 and the server's name\n%s", o)
		}
	})
}

// testHTTP starts server-everything as a separate process and calls it over Streamable HTTP.
func (p *peers) testHTTP(t *testing.T) {
	port := clitest.FreePort(t)
	log := background(t, []string{"PORT=" + port}, p.server(t, "server-everything", "streamableHttp")...)
	url := "http://127.0.0.1:" + port + "/mcp"
	answers(t, url)
	s := p.shell(t)
	s.everything(t, "--url", url)
	// The client exits without a long wait for the response to its request that ends the session, so the server may end
	// the session later.
	opened, ended := 0, 0
	for end := time.Now().Add(time.Minute); (opened == 0 || opened != ended) &&
		time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		said := log()
		opened, ended = strings.Count(said, "Session initialized with ID"),
			strings.Count(said, "Received session termination request")
	}
	if opened == 0 || opened != ended {
		t.Errorf("%d sessions were opened and %d ended", opened, ended)
	}
	if o := s.Run(t, "tools", "list", "--url", "http://127.0.0.1:"+port+"/nowhere"); o.Status != 4 ||
		!strings.Contains(o.ErrOut, "/nowhere") {
		t.Errorf("want status 4 and the address\n%s", o)
	}
}

// testSSE tests the same features as testHTTP over HTTP+SSE, with the transport specified. It also checks that tenon
// detects this transport.
func (p *peers) testSSE(t *testing.T) {
	port := clitest.FreePort(t)
	background(t, []string{"PORT=" + port}, p.server(t, "server-everything", "sse")...)
	url := "http://127.0.0.1:" + port + "/sse"
	answers(t, "http://127.0.0.1:"+port+"/nothing")
	s := p.shell(t)
	s.everything(t, "--url", url, "--transport", "sse")
	if o := s.OK(t, "servers", "test", "--url", url, "--transport", "auto", "-o", "json"); !strings.Contains(o.Out,
		`"found":"sse"`) {
		t.Errorf("auto does not detect it\n%s", o)
	}
}

// everything tests the features of server-everything.
func (s shell) everything(t *testing.T, server ...string) {
	call := func(args ...string) []string {
		return append(append([]string{"tools", "call"}, args...), server...)
	}
	t.Run("list", func(t *testing.T) { s.offers(t, everythingTools, server...) })
	t.Run("text", func(t *testing.T) {
		if o := s.OK(t, call("echo", "message=grüezi 🧀")...); o.Out != "Echo: grüezi 🧀\n" {
			t.Errorf("want only the text on stdout\n%s", o)
		}
	})
	t.Run("numbers", func(t *testing.T) {
		o := s.OK(t, call("get-sum", "--params", `{"a":20,"b":22.5}`, "-o", "json")...)
		if r := clitest.Decode[callResult](t, o); len(r.Content) != 1 || !strings.Contains(r.Content[0].Text, "42.5") {
			t.Errorf("not the sum\n%s", o)
		}
	})
	t.Run("invalid arguments", func(t *testing.T) {
		if o := s.Run(t, call("get-sum", "a=twenty", "b:=22")...); o.Status != 2 ||
			!strings.Contains(o.ErrOut, "number") {
			t.Errorf("want status 2 and the expected type\n%s", o)
		}
	})
	t.Run("structured content", func(t *testing.T) {
		r := clitest.Decode[callResult](t, s.OK(t, call("get-structured-content", "location=New York", "-o",
			"json")...))
		var weather struct {
			Temperature *float64
			Conditions  string
		}
		if err := json.Unmarshal(r.StructuredContent, &weather); err != nil || weather.Temperature == nil ||
			weather.Conditions == "" {
			t.Errorf("structuredContent is %s, %v", r.StructuredContent, err)
		}
	})
	t.Run("image", func(t *testing.T) {
		o := s.OK(t, call("get-tiny-image", "-o", "json")...)
		r := clitest.Decode[callResult](t, o)
		if len(r.Content) != 3 || r.Content[1].Type != "image" || r.Content[1].MimeType != "image/png" {
			t.Fatalf("not text, image, text\n%s", o)
		}
		b, err := base64.StdEncoding.DecodeString(r.Content[1].Data)
		if err != nil || !bytes.HasPrefix(b, []byte("\x89PNG\r\n")) {
			t.Errorf("not a PNG: %v", err)
		}
	})
	t.Run("resource links", func(t *testing.T) {
		o := s.OK(t, call("get-resource-links", "count:=2", "-o", "json")...)
		r := clitest.Decode[callResult](t, o)
		if links := slices.DeleteFunc(r.Content,
			func(c struct{ Type, Text, Data, MimeType string }) bool { return c.Type != "resource_link" }); len(
			links) != 2 {
			t.Errorf("want two links\n%s", o)
		}
	})
	t.Run("progress", func(t *testing.T) {
		o := s.OK(t, call("trigger-long-running-operation", "duration:=2", "steps:=4", "-o", "jsonl")...)
		type line struct {
			Kind string
			Data struct {
				Progress, Total float64
				Content         []struct{ Text string }
			}
		}
		all := clitest.Lines[line](t, o)
		last := 0.0
		for _, l := range all[:len(all)-1] {
			if l.Kind != "progress" || l.Data.Progress <= last || l.Data.Total != 4 {
				t.Errorf("want increasing progress up to 4: %+v", l)
			}
			last = l.Data.Progress
		}
		// The client may skip a notification if a newer one is available, but it must not skip all of them.
		if result := all[len(all)-1]; len(all) < 2 || result.Kind != "result" || len(result.Data.Content) != 1 ||
			!strings.Contains(result.Data.Content[0].Text, "Steps: 4") {
			t.Errorf("want progress and the result\n%s", o)
		}
	})
}

// testConfig uses all servers in one tenon.yaml.
func (p *peers) testConfig(t *testing.T) {
	s := p.shell(t)
	config := map[string]any{
		"servers": map[string]any{
			"everything": command(p.server(t, "server-everything", "stdio")),
			"files":      command(p.server(t, "server-filesystem", s.Dir)),
			"memory": with(command(p.server(t, "server-memory")), "env",
				map[string]string{"MEMORY_FILE_PATH": filepath.Join(s.Dir, "memory.json")}),
			"gone": command([]string{p.node, filepath.Join(s.Dir, "gone.js")}),
		},
	}
	s.config(t, config)
	t.Run("a server that cannot start does not affect the others", func(t *testing.T) {
		o := s.OK(t, "tools", "list", "-c", "tenon.yaml", "-o", "json")
		count := map[string]int{}
		for _, tool := range clitest.Decode[[]struct{ Server string }](t, o) {
			count[tool.Server]++
		}
		if count["everything"] != len(everythingTools) || count["files"] != 14 || count["memory"] != 9 {
			t.Errorf("got %v", count)
		}
		if !strings.Contains(o.ErrOut, "'gone'") {
			t.Errorf("no message about the server that cannot start\n%s", o)
		}
	})
	t.Run("test", func(t *testing.T) {
		o := s.Run(t, "servers", "test", "-c", "tenon.yaml", "-o", "json")
		ready := 0
		for _, server := range clitest.Decode[[]struct{ Name, State, Protocol string }](t, o) {
			switch {
			case server.Name == "gone":
			case server.State != "ready" || server.Protocol != "2025-11-25":
				t.Errorf("%+v, want ready at 2025-11-25", server)
			default:
				ready++
			}
		}
		if o.Status != 4 || ready != 3 {
			t.Errorf("want three ready servers, and status 4 for the other one\n%s", o)
		}
	})
	t.Run("a server keeps its data", func(t *testing.T) {
		o := s.OK(t, "tools", "call", "create_entities", "-c", "tenon.yaml", "--params",
			`{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}`)
		if !strings.Contains(o.Out, "Ada") {
			t.Errorf("not the entity\n%s", o)
		}
		if o := s.OK(t, "tools", "call", "search_nodes", "query=program", "-c",
			"tenon.yaml"); !strings.Contains(o.Out, "Ada") {
			t.Errorf("not found by another process\n%s", o)
		}
	})
}

func command(args []string) map[string]any {
	return map[string]any{"command": args[0], "args": args[1:], "timeout": startTime}
}

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

// config writes tenon.yaml as JSON, which is valid YAML.
func (s shell) config(t *testing.T, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "tenon.yaml"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
