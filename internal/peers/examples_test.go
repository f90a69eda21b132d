package peers

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// example returns the command of an example server of the TypeScript SDK.
func (p *peers) example(t *testing.T, name string) []string {
	t.Helper()
	return []string{p.node, p.bin(t, "@modelcontextprotocol", "sdk", "dist", "esm", "examples", "server", name+".js")}
}

// serveExample starts an example server over HTTP on its own port. It returns the address without a path, and
// the output so far.
func (p *peers) serveExample(t *testing.T, name string) (base string, log func() string) {
	t.Helper()
	port := clitest.FreePort(t)
	command := slices.Insert(p.example(t, name), 1, "--require", absolute(t, "testdata", "port.cjs"))
	log = background(t, []string{"PORT=" + port, "MCP_PORT=" + port}, command...)
	base = "http://127.0.0.1:" + port
	answers(t, base+"/nothing")
	return base, log
}

// testExamples tests the feature of each example.
func (p *peers) testExamples(t *testing.T) {
	t.Run("mcpServerOutputSchema", func(t *testing.T) {
		s := p.shell(t)
		o := s.OK(t, append([]string{"tools", "call", "get_weather", "city=Bern", "country=CH", "-o", "json", "--"},
			p.example(t, "mcpServerOutputSchema")...)...)
		if r := clitest.Decode[callResult](t, o); !strings.Contains(string(r.StructuredContent), `"humidity":`) {
			t.Errorf("no structured content\n%s", o)
		}
	})
	t.Run("progressExample", func(t *testing.T) { testProgressExample(t, p) })
	t.Run("toolWithSampleServer", func(t *testing.T) { // also prints a line to stdout that is not JSON
		s := p.shell(t)
		script := s.WriteFile(t, "steps.yaml", "steps:\n  - text: It is short.\n")
		s.config(t, map[string]any{
			"servers": map[string]any{"sample": with(with(command(p.example(t, "toolWithSampleServer")), "sampling",
				"allow"), "sampling_model", "m")},
			"models": map[string]any{"m": map[string]any{"provider": "script", "path": script}},
		})
		if o := s.OK(t, "tools", "call", "-c", "tenon.yaml", "summarize", "text=long"); o.Out != "It is short.\n" {
			t.Errorf("not what the model said\n%s", o)
		}
	})
	for _, name := range []string{"simpleStreamableHttp", "jsonResponseStreamableHttp",
		"honoWebStandardStreamableHttp"} {
		t.Run(name, func(t *testing.T) {
			base, _ := p.serveExample(t, name)
			s := p.shell(t)
			if o := s.OK(t, "tools", "call", "greet", "name=Ann", "--url", base+"/mcp"); !strings.HasPrefix(o.Out,
				"Hello, Ann!") {
				t.Errorf("no greeting\n%s", o)
			}
			if name == "simpleStreamableHttp" {
				// The second notification is sent with the result on another stream, so it may arrive too late.
				o := s.OK(t, "tools", "call", "multi-greet", "name=Ann", "--url", base+"/mcp", "--log-level", "info")
				if o.Out != "Good morning, Ann!\n" || !strings.Contains(o.ErrOut, "Sending first greeting to Ann") {
					t.Errorf("not the greeting and the server's messages\n%s", o)
				}
			}
		})
	}
	t.Run("simpleStatelessStreamableHttp", func(t *testing.T) { // there is no stream for its notifications
		base, _ := p.serveExample(t, "simpleStatelessStreamableHttp")
		s := p.shell(t)
		o := s.OK(t, "tools", "call", "start-notification-stream", "interval:=10", "count:=3", "--url", base+"/mcp")
		if o.Out != "Started sending periodic notifications every 10ms\n" {
			t.Errorf("not the result\n%s", o)
		}
	})
	t.Run("simpleSseServer", func(t *testing.T) {
		base, _ := p.serveExample(t, "simpleSseServer")
		p.notices(t, base+"/mcp", "sse")
	})
	t.Run("sseAndStreamableHttpCompatibleServer", func(t *testing.T) {
		base, _ := p.serveExample(t, "sseAndStreamableHttpCompatibleServer")
		p.notices(t, base+"/mcp", "http")
		p.notices(t, base+"/sse", "sse")
	})
	t.Run("elicitationFormExample", func(t *testing.T) { testFormExample(t, p) })
	t.Run("ssePollingExample", func(t *testing.T) {
		base, log := p.serveExample(t, "ssePollingExample")
		s := p.shell(t)
		if o := s.OK(t, "tools", "call", "long-task", "--url",
			base+"/mcp"); o.Out != "Long task completed successfully!\n" {
			t.Errorf("no result after the stream was closed\n%s", o)
		}
		if !strings.Contains(log(), "Closing SSE stream") || strings.Count(log(), "Starting long-task") != 1 {
			t.Errorf("the stream was not closed, or the task was started again\n%s", log())
		}
	})
}

func testProgressExample(t *testing.T, p *peers) {
	s := p.shell(t)
	count := func(args ...string) []string {
		return append(append(append([]string{"tools", "call", "count"}, args...), "--"),
			p.example(t, "progressExample")...)
	}
	o := s.OK(t, count("n:=3", "-o", "jsonl")...)
	lines := clitest.Lines[struct {
		Kind string
		Data struct{ Message string }
	}](t, o)
	if len(lines) < 3 || lines[0].Kind != "progress" || !strings.HasPrefix(lines[0].Data.Message, "Counting: ") ||
		!strings.Contains(o.Out, "Counted to 3") {
		t.Errorf("not progress and a result\n%s", o)
	}
	// The limit applies to the list of tools too. Counting takes ten seconds, and progress must not extend the limit.
	s.config(t, map[string]any{"servers": map[string]any{"p": with(command(p.example(t, "progressExample")),
		"request_timeout", "4s")},
		"policy": map[string]any{"defaults": map[string]any{"timeout_progress": "4s"}}})
	if o := s.Run(t, "tools", "call", "-c", "tenon.yaml", "count", "n:=100"); o.Status != 5 ||
		!strings.Contains(o.ErrOut, "timed out") || strings.Contains(o.ErrOut, "100/100") {
		t.Errorf("the call does not time out\n%s", o)
	}
}

func testFormExample(t *testing.T, p *peers) {
	base, _ := p.serveExample(t, "elicitationFormExample")
	s := p.shell(t)
	s.config(t, map[string]any{"servers": map[string]any{"forms": map[string]any{"url": base + "/mcp"}}})
	o := s.answered(t, `{"username":"anna","email":"ann@x.example","password":"12345678"}`, "register_user")
	if o.Status != 0 || !strings.Contains(o.Out, "anna") {
		t.Errorf("no registration\n%s", o)
	}
}

// notices calls an example server that sends notifications during a call.
func (p *peers) notices(t *testing.T, url, transport string) {
	t.Helper()
	s := p.shell(t)
	o := s.OK(t, "tools", "call", "start-notification-stream", "interval:=700", "count:=3", "--url", url, "--transport",
		transport, "--log-level", "info")
	came := strings.Count(o.ErrOut, "otification #")
	if transport == "http" && came > 0 {
		came = 3 // notifications use a separate stream, so the result may arrive before them
	}
	if came != 3 || o.Out == "" {
		t.Errorf("not the notifications and the result over %s\n%s", transport, o)
	}
}
