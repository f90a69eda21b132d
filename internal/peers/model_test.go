package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// proxy forwards requests from tenon to aimock and keeps them in their wire form. The journal of aimock has
// them only in a common form.
type proxy struct {
	*httptest.Server
	under    sync.WaitGroup // requests in progress
	mu       sync.Mutex
	requests []request
}

type request struct {
	at     time.Time
	path   string
	header http.Header
	body   []byte
	status int
}

func record(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.under.Add(1)
		defer p.under.Done()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		seen := request{at: time.Now(), path: r.URL.Path, header: r.Header.Clone(), body: b}
		status := &statusWriter{ResponseWriter: w}
		forward.ServeHTTP(status, r)
		seen.status = status.status
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests = append(p.requests, seen)
	}))
	t.Cleanup(p.Close)
	return p
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy flush (http.ResponseController).
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// take returns the requests since its last call. It waits for requests in progress, because a client may end
// before the last byte of a response.
func (p *proxy) take() []request {
	p.under.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.requests
	p.requests = nil
	return list
}

// aimock starts the model and returns its address. A request that matches no fixture gets an error.
func (p *peers) aimock(t *testing.T, fixtures any, more ...string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	strict := []string{"AIMOCK_STRICT_TURN_INDEX=1"}
	args := []string{p.bin(t, "@copilotkit", "aimock", "dist", "cli.js"), "-h", "127.0.0.1", "-p", "0", "--chunk-size",
		"7", "--validate-on-load", "--strict", "-f", file}
	log := background(t, strict, append(append([]string{p.node}, args...), more...)...)
	listening := regexp.MustCompile(`listening on (http://[0-9.:]+)`)
	for range 1800 { // 90 s, because other tests run at the same time
		if m := listening.FindStringSubmatch(log()); m != nil {
			return m[1]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("aimock does not listen: %s", log())
	return ""
}

type m = map[string]any

// fixtures returns the responses to a question about the secret number: two concurrent calls to two servers, then a
// third call, then the answer. A later response is sent only if the last result in the request contains what the server
// returned.
func fixtures(note string) []m {
	var list []m
	for _, question := range []string{"secret"} {
		list = append(list,
			m{"match": m{"userMessage": question, "turnIndex": 0},
				"response": m{"content": "I shall look it up, käse included.",
					"toolCalls": []m{
						{"name": "get-sum", "arguments": m{"a": 20, "b": 22}},
						{"name": "read_text_file", "arguments": m{"path": note}},
					}}},
			m{"match": m{"userMessage": question, "turnIndex": 1, "toolResultContains": "the word is tenon"},
				"response": m{"toolCalls": []m{{"name": "echo", "arguments": m{"message": "42 tenon 🧀"}}}}},
			m{"match": m{"userMessage": question, "turnIndex": 2, "toolResultContains": "42 tenon 🧀"},
				"response": m{"content": "It is 42, and the word is tenon."}})
	}
	for _, model := range []string{"claude-test", "gpt-test"} {
		list = append(list,
			m{"match": m{"userMessage": "busy", "model": model, "sequenceIndex": 0},
				"response": m{"error": m{"message": "slow down", "type": "rate_limit_error"}, "status": 429}},
			m{"match": m{"userMessage": "busy", "model": model}, "response": m{"content": "At last."}})
	}
	return append(list,
		m{"match": m{"userMessage": "write it down", "turnIndex": 0}, "response": m{"toolCalls": []m{
			{"name": "write_file", "arguments": m{"path": filepath.Join(filepath.Dir(note), "written.txt"),
				"content": "käse"}}}}},
		m{"match": m{"userMessage": "write it down", "turnIndex": 1, "toolResultContains": "written.txt"},
			"response": m{"content": "Written."}},
		m{"match": m{"userMessage": "picture", "turnIndex": 0},
			"response": m{"toolCalls": []m{{"name": "get-tiny-image", "arguments": m{}}}}},
		// Chat Completions has no images in tool messages, so the image follows in a user message.
		m{"match": m{"turnIndex": 1}, "response": m{"content": "A logo."}})
}

// report is the output of `run -o json`.
type report struct {
	Answer     string
	State      string
	StopReason string `json:"stop_reason"`
	Run        string
	Session    string
	ToolCalls  []struct {
		Server, Tool, Name string
		Remote             string `json:"remote_name"`
		Success            bool
		Outcome            string
	} `json:"tool_calls"`
}

type modelFormat struct {
	model, path string
	blocks      func(*testing.T, []request)
	image       string
}

func (p *peers) testModels(t *testing.T) {
	s := p.shell(t, "PEER_KEY=sk-not-a-key")
	note := filepath.Join(s.Dir, "note.txt")
	if err := os.WriteFile(note, []byte("the word is tenon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	aimock := p.aimock(t, fixtures(note))
	wire := record(t, aimock)
	key := m{"env": "PEER_KEY"}
	s.config(t, m{
		"servers": m{
			"everything": command(p.server(t, "server-everything", "stdio")),
			"files":      command(p.server(t, "server-filesystem", s.Dir)),
		},
		"models": m{
			"claude": m{"provider": "anthropic", "model": "claude-test", "base_url": wire.URL, "api_key": key},
			"gpt": m{"provider": "openai-compatible", "model": "gpt-test", "base_url": wire.URL + "/v1",
				"api_key": key},
		},
	})
	for _, format := range []modelFormat{
		{"claude", "/v1/messages", anthropicBlocks, `"media_type":"image/png"`},
		{"gpt", "/v1/chat/completions", openaiBlocks, `data:image/png;base64,`},
	} {
		t.Run(format.model, func(t *testing.T) {
			t.Run("two servers, calls in parallel", func(t *testing.T) { testParallelCalls(t, s, wire, format) })
			t.Run("text streams", func(t *testing.T) { testTextStreams(t, s, format) })
			t.Run("429 with Retry-After", func(t *testing.T) { testRetryAfter(t, s, wire, format) })
			t.Run("an image reaches the model", func(t *testing.T) {
				wire.take()
				o := s.OK(t, "run", "-c", "tenon.yaml", "--model", format.model, "Show me the picture")
				q := wire.take()
				if o.Out != "A logo.\n" || len(q) != 2 || !bytes.Contains(q[1].body, []byte(format.image)) {
					t.Errorf("the second request has no %s\n%s", format.image, o)
				}
			})
			t.Run("a call that asks waits for another process", func(t *testing.T) { testAsksElsewhere(t, s, format) })
			t.Run("recorded and replayed", func(t *testing.T) {
				args := []string{"run", "-c", "tenon.yaml", "--model", format.model, "What is the secret?"}
				was := s.OK(t, append(args, "--record", "cassette-"+format.model)...)
				wire.take()
				if o := s.OK(t, append(args, "--replay", "cassette-"+format.model)...); o.Out != was.Out {
					t.Errorf("the recorded output is %s, the replayed one\n%s", was, o)
				}
				if q := wire.take(); len(q) != 0 {
					t.Errorf("replaying asked the model %d times", len(q))
				}
			})
			t.Run("a question that the server refuses", func(t *testing.T) {
				o := s.Run(t, "run", "-c", "tenon.yaml", "--model", format.model, "--no-tools", "-o", "json",
					"Something else?")
				if o.Status == 0 || !strings.Contains(o.ErrOut, "404") && !strings.Contains(o.ErrOut, "503") &&
					!strings.Contains(o.ErrOut, "fixture") {
					t.Errorf("want the server's error\n%s", o)
				}
			})
		})
	}
	t.Run("journal", func(t *testing.T) { aimockJournal(t, aimock) })
	t.Run("key stays out of the store", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(s.Dir, ".tenon", "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no store: %v", err)
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("sk-not-a-key")) {
				t.Errorf("%s holds the key", filepath.Base(f))
			}
		}
	})
}

func testParallelCalls(t *testing.T, s shell, wire *proxy, format modelFormat) {
	wire.take()
	o := s.OK(t, "run", "-c", "tenon.yaml", "--model", format.model, "-o", "json", "What is the secret?")
	r := clitest.Decode[report](t, o)
	if r.Answer != "It is 42, and the word is tenon." || r.State != "completed" || r.StopReason != "stop" ||
		len(r.ToolCalls) != 3 {
		t.Errorf("not the answer by three calls\n%s", o)
	}
	requests := wire.take()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	for _, q := range requests {
		if q.path != format.path || q.status != http.StatusOK {
			t.Errorf("%s ended with %d, want %s and 200", q.path, q.status, format.path)
		}
	}
	format.blocks(t, requests)
}

func testRetryAfter(t *testing.T, s shell, wire *proxy, format modelFormat) {
	wire.take()
	o := s.OK(t, "run", "-c", "tenon.yaml", "--model", format.model, "--no-tools", "Are you busy?")
	if o.Out != "At last.\n" {
		t.Errorf("not the answer\n%s", o)
	}
	q := wire.take()
	if len(q) != 2 || q[0].status != http.StatusTooManyRequests || q[1].status != http.StatusOK {
		t.Fatalf("want one refusal and one answer, got %d requests", len(q))
	}
	if waited := q[1].at.Sub(q[0].at); waited < 900*time.Millisecond {
		t.Errorf("the retry waited %s, the server asked for one second", waited)
	}
	if !bytes.Equal(q[0].body, q[1].body) {
		t.Error("the second attempt differs from the first")
	}
}

func testAsksElsewhere(t *testing.T, s shell, format modelFormat) {
	o := s.Run(t, "run", "-c", "tenon.yaml", "--model", format.model, "-o", "json", "Please write it down")
	r := clitest.Decode[report](t, o)
	written := filepath.Join(s.Dir, "written.txt")
	if _, err := os.Stat(written); o.Status != 8 || r.State != "input_required" || err == nil {
		t.Fatalf("want a waiting run, and no file yet\n%s", o)
	}
	s.OK(t, "approvals", "allow", r.Run, "-c", "tenon.yaml")
	if o := s.OK(t, "runs", "resume", r.Run, "-c", "tenon.yaml"); o.Out != "Written.\n" {
		t.Errorf("not the answer\n%s", o)
	}
	if b, err := os.ReadFile(written); err != nil || string(b) != "käse" {
		t.Errorf("the file is %q, %v", b, err)
	}
	if err := os.Remove(written); err != nil {
		t.Error(err)
	}
}

func testTextStreams(t *testing.T, s shell, format modelFormat) {
	o := s.OK(t, "run", "-c", "tenon.yaml", "--model", format.model, "What is the secret?")
	if !strings.HasPrefix(o.Out, "I shall look it up, käse included.\n") ||
		!strings.HasSuffix(o.Out, "It is 42, and the word is tenon.\n") {
		t.Errorf("stdout is not the text\n%s", o)
	}
	for _, call := range []string{"everything.get-sum", "files.read_text_file", "everything.echo"} {
		if !strings.Contains(o.ErrOut, call) {
			t.Errorf("no line for %s\n%s", call, o)
		}
	}
}

// aimockJournal reads aimock's own record of the requests. The last request of each run has all calls and
// their results, linked by id.
func aimockJournal(t *testing.T, address string) {
	resp, err := http.Get(address + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var journal []struct {
		Path string
		Body struct {
			Messages []struct {
				Role       string
				ToolCallID string                `json:"tool_call_id"`
				ToolCalls  []struct{ ID string } `json:"tool_calls"`
			}
			Tools []any
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&journal); err != nil {
		t.Fatal(err)
	}
	whole := map[string]int{}
	for _, entry := range journal {
		var called, answered []string
		for _, msg := range entry.Body.Messages {
			for _, c := range msg.ToolCalls {
				called = append(called, c.ID)
			}
			if msg.Role == "tool" {
				answered = append(answered, msg.ToolCallID)
			}
		}
		if strings.Join(called, " ") != strings.Join(answered, " ") {
			t.Errorf("%s: calls %q and results %q do not match", entry.Path, called, answered)
		}
		if len(called) == 3 {
			whole[entry.Path]++
		}
	}
	if whole["/v1/messages"] != 3 || whole["/v1/chat/completions"] != 3 {
		t.Errorf("requests with all three calls by path: %v, want 3 each", whole)
	}
}

// anthropicBlocks checks the native form of the Messages API: tool_use blocks in an assistant message, and
// their tool_result blocks together in the next user message.
func anthropicBlocks(t *testing.T, requests []request) {
	type block struct {
		Type, ID, Name string
		Input          json.RawMessage
		ToolUseID      string `json:"tool_use_id"`
		Content        json.RawMessage
	}
	var body struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	last := requests[len(requests)-1]
	if err := json.Unmarshal(last.body, &body); err != nil {
		t.Fatal(err)
	}
	if got := last.header.Get("X-Api-Key"); got != "sk-not-a-key" || last.header.Get("Anthropic-Version") == "" {
		t.Errorf("wrong headers: key %q, version %q", got, last.header.Get("Anthropic-Version"))
	}
	if !body.Stream || len(body.Tools) != len(everythingTools)+len(filesystemTools) || len(body.Messages) != 5 {
		t.Fatalf("stream %v, %d tools, %d messages", body.Stream, len(body.Tools), len(body.Messages))
	}
	var uses, results []block
	for i, msg := range body.Messages {
		if want := []string{"user", "assistant"}[i%2]; msg.Role != want {
			t.Errorf("message %d has role %s, want %s", i, msg.Role, want)
		}
		var blocks []block
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				uses = append(uses, b)
			case "tool_result":
				results = append(results, b)
			}
		}
		if i == 2 && len(results) != 2 {
			t.Errorf("%d results in the message after two calls", len(results))
		}
	}
	if len(uses) != 3 || len(results) != 3 {
		t.Fatalf("%d tool_use and %d tool_result blocks, want 3 each:\n%s", len(uses), len(results), last.body)
	}
	for i, want := range []struct{ name, result string }{{"get-sum", "42"}, {"read_text_file", "the word is tenon"},
		{"echo", "42 tenon 🧀"}} {
		if uses[i].Name != want.name || uses[i].ID == "" || results[i].ToolUseID != uses[i].ID ||
			!bytes.Contains(results[i].Content, []byte(want.result)) {
			t.Errorf("call %d: %+v and %+v, want %s", i, uses[i], results[i], want)
		}
	}
}

// openaiBlocks checks the native form of Chat Completions: tool_calls in an assistant message, and one tool
// message for each of them.
func openaiBlocks(t *testing.T, requests []request) {
	var body struct {
		Stream   bool
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	last := requests[len(requests)-1]
	if err := json.Unmarshal(last.body, &body); err != nil {
		t.Fatal(err)
	}
	if got := last.header.Get("Authorization"); got != "Bearer sk-not-a-key" {
		t.Errorf("the key is sent as %q", got)
	}
	if !body.Stream || len(body.Tools) != len(everythingTools)+len(filesystemTools) {
		t.Fatalf("stream %v, %d tools", body.Stream, len(body.Tools))
	}
	var roles []string
	var calls, results []string
	for _, msg := range body.Messages {
		roles = append(roles, msg.Role)
		for _, c := range msg.ToolCalls {
			calls = append(calls, c.ID+" "+c.Function.Name)
			if c.Type != "function" || !json.Valid([]byte(c.Function.Arguments)) {
				t.Errorf("not a function with arguments: %+v", c)
			}
		}
		if msg.Role == "tool" {
			results = append(results, msg.ToolCallID+" "+string(msg.Content))
		}
	}
	if got := strings.Join(roles, " "); strings.TrimPrefix(got,
		"system ") != "user assistant tool tool assistant tool" {
		t.Errorf("the messages are %s", got)
	}
	if len(calls) != 3 || len(results) != 3 {
		t.Fatalf("%d tool_calls and %d tool messages, want 3 each:\n%s", len(calls), len(results), last.body)
	}
	for i, want := range []struct{ name, result string }{{"get-sum", "42"}, {"read_text_file", "the word is tenon"},
		{"echo", "42 tenon 🧀"}} {
		id, name, _ := strings.Cut(calls[i], " ")
		if name != want.name || !strings.HasPrefix(results[i], id+" ") || !strings.Contains(results[i], want.result) {
			t.Errorf("call %d: %q and %q, want %s", i, calls[i], results[i], want)
		}
	}
}
