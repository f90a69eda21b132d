package ollama_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/ollama"
)

// server gives the same answer to all requests and records them.
type server struct {
	status     int
	kind, body string
	url        string
	header     http.Header
	sent       string
	slow       bool // single bytes
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.url, s.header, s.sent = r.URL.String(), r.Header, string(body)
	rd := io.Reader(strings.NewReader(s.body))
	if s.slow {
		rd = iotest.OneByteReader(rd)
	}
	h := http.Header{"Content-Type": {s.kind}}
	if s.kind == "" {
		h.Set("Content-Type", "application/x-ndjson")
	}
	status := s.status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(rd), Request: r}, nil
}

func open(t *testing.T, s *server, change func(*model.Config)) *ollama.Model {
	t.Helper()
	none := 0
	cfg := model.Config{Name: "main", Provider: "ollama", API: model.APIOllama, Model: "qwen3:8b", Retries: &none}
	if change != nil {
		change(&cfg)
	}
	m, err := ollama.New(cfg, model.Env{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask returns a one-line description of a model's answer.
func ask(t *testing.T, m tenon.Model, req *tenon.Request) string {
	t.Helper()
	var b strings.Builder
	for d, err := range m.Generate(t.Context(), req) {
		switch {
		case err != nil:
			return fmt.Sprintf("%s%s %s: %v", b.String(), tenon.ErrorCode(err), model.KindOf(err), err)
		case d.Response == nil:
			fmt.Fprintf(&b, "%s:%s ", d.Kind, d.Text)
		default:
			b.WriteString(describe(d.Response))
		}
	}
	return b.String()
}

func describe(r *tenon.Response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s(%s)", r.Stop, r.RawStop)
	for _, p := range r.Message.Parts {
		if p.Call != nil {
			fmt.Fprintf(&b, " %s=%s%s%s", strings.SplitAfter(p.Call.ID, "call_")[0], p.Call.Name, p.Call.Arguments, p.Call.Malformed)
			continue
		}
		fmt.Fprintf(&b, " %s:%q", p.Type, p.Text)
	}
	if u := r.Usage; u != nil {
		fmt.Fprintf(&b, " %d/%d", u.Input, u.Output)
	}
	if r.Timing != nil {
		fmt.Fprintf(&b, " %v", *r.Timing)
	}
	for _, p := range r.Logprobs {
		fmt.Fprintf(&b, " p(%s %g %d)", p.Token, p.Logprob, len(p.Top))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, " [%s]", w)
	}
	return b.String()
}

var hello = &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("Hi")}}

// chunk returns a line of a streamed answer.
func chunk(message string) string {
	return `{"model":"qwen3:8b","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant",` + message + `},"done":false}` + "\n"
}

func ended(reason string) string {
	return `{"model":"qwen3:8b","created_at":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"` +
		reason + `","total_duration":9000000000,"load_duration":1500000000,"prompt_eval_count":26,"prompt_eval_duration":250000000,"eval_count":12,"eval_duration":750000000}` + "\n"
}

// Test_MD10_OllamaStream checks answers of Ollama's own API, whole and in single bytes. The lines have the members of
// api/types.go of ollama/ollama.
func Test_MD10_OllamaStream(t *testing.T) {
	call := func(id, name, args string) string {
		return `{` + id + `"function":{"index":0,"name":"` + name + `","arguments":` + args + `}}`
	}
	const end = " 26/12 {1500 250 750}"
	for name, c := range map[string]struct{ body, want string }{
		"text": {chunk(`"content":"Hel"`) + "\n" + chunk(`"content":"lo é"`) + ended("stop"), `text:Hel text:lo é | stop(stop) text:"Hello é"` + end},
		"thinking": {chunk(`"content":"","thinking":"hm"`) + chunk(`"content":"","thinking":"m"`) + chunk(`"content":"Yes"`) + ended("stop"),
			`thinking:hm thinking:m text:Yes | stop(stop) thinking:"hmm" text:"Yes"` + end},
		"calls": {chunk(`"content":"","tool_calls":[`+call(`"id":"call_a1",`, "add", `{"a":9007199254740993}`)+`]`) +
			chunk(`"content":"","tool_calls":[`+call(`"id":"call_a2",`, "look", `{}`)+`]`) + ended("stop"),
			`call:add call:look | tool_use(stop) call_=add{"a":9007199254740993} call_=look{}` + end},
		"calls without ids": {chunk(`"content":"","tool_calls":[`+call("", "add", `{"a":1}`)+","+call("", "add", `{"a":2}`)+`]`) + ended("stop"),
			`call:add call:add | tool_use(stop) call_=add{"a":1} call_=add{"a":2}` + end},
		"arguments as text": {chunk(`"content":"","tool_calls":[`+call(`"id":"call_1",`, "add", `"{\"a\":1}"`)+`]`) + ended("stop"),
			`call:add | tool_use(stop) call_=add{"a":1}` + end},
		"no name":          {chunk(`"content":"","tool_calls":[`+call("", "", `{}`)+`]`) + ended("stop"), `| bad_call(stop)` + end + " [a tool call without a name is omitted]"},
		"context is full":  {chunk(`"content":"and"`) + ended("length"), `text:and | context_full(length) text:"and"` + end},
		"limit":            {chunk(`"content":"and"`) + strings.Replace(ended("length"), `"eval_count":12`, `"eval_count":4096`, 1), `text:and | max_tokens(length) text:"and" 26/4096 {1500 250 750}`},
		"no reason, older": {`{"message":{"role":"assistant","content":"x"},"done":false}` + "\n" + `{"done":true}`, `text:x | stop() text:"x"`},
		"unknown reason":   {chunk(`"content":"x"`) + ended("unload"), `text:x | error(unload) text:"x"` + end},
		"probabilities": {`{"message":{"content":"x"},"logprobs":[{"token":"x","logprob":-0.5,"bytes":[120],"top_logprobs":[{"token":"x","logprob":-0.5},{"token":"y","logprob":-2}]}],"done":false}` + "\n" + ended("stop"),
			`text:x | stop(stop) text:"x"` + end + ` p(x -0.5 2)`},
		"cut off":         {chunk(`"content":"x"`), `text:x protocol cut_off: ollama/qwen3:8b: the answer was cut off: the stream ended before the line with "done"; `},
		"half a line":     {chunk(`"content":"x"`) + `{"message":{"con`, `text:x protocol malformed: ollama/qwen3:8b: an event of the answer is not JSON: {"message":{"con`},
		"error in stream": {chunk(`"content":"x"`) + `{"error":"model runner has unexpectedly stopped"}`, `text:x model_error `},
		"bad call":        {chunk(`"content":"x"`) + `{"error":"error parsing tool call: raw='{', err=unexpected end of JSON input"}`, `text:x | bad_call(error parsing tool call: raw='{', err=unexpected end of JSON input) text:"x"`},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/slow=%t", name, slow), func(t *testing.T) {
				got := ask(t, open(t, &server{body: c.body, slow: slow}, nil), hello)
				if !strings.HasPrefix(got, strings.TrimSuffix(c.want, "; ")) {
					t.Errorf("\ngot  %s\nwant %s", got, c.want)
				}
			})
		}
	}
}

// Test_MD10_OllamaDocument checks answers without a stream, and failures before one.
func Test_MD10_OllamaDocument(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		server server
		want   string
	}{
		"document":        {server{kind: "application/json; charset=utf-8", body: strings.Replace(ended("stop"), `"content":""`, `"content":"Hi"`, 1)}, `text:Hi | stop(stop) text:"Hi" 26/12 {1500 250 750}`},
		"no such model":   {server{kind: "application/json", status: 404, body: `{"error":"model 'qwen3:8b' not found"}`}, "model_error refused: ollama/qwen3:8b: HTTP 404: model 'qwen3:8b' not found; download it with tenon models pull qwen3:8b, or check models.main.base_url"},
		"no thinking":     {server{kind: "application/json", status: 400, body: `{"error":"\"qwen3:8b\" does not support thinking"}`}, `model_error refused: ollama/qwen3:8b: HTTP 400: "qwen3:8b" does not support thinking; remove models.main.reasoning`},
		"too long":        {server{kind: "application/json", status: 400, body: `{"error":"the input length exceeds the context length"}`}, "too_large too_long: ollama/qwen3:8b: HTTP 400: the input length exceeds the context length; raise models.main.num_ctx, shorten the conversation or offer fewer tools"},
		"another service": {server{kind: "text/html", status: 404, body: `<html>`}, "model_error refused: ollama/qwen3:8b: HTTP 404: answered with a web page instead of an API response; "},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.server
			got := ask(t, open(t, &s, func(cfg *model.Config) { cfg.Quirks.Stream = &no }), hello)
			if !strings.HasPrefix(got, c.want) || !strings.Contains(s.sent, `"stream":false`) {
				t.Errorf("\ngot  %s\nwant %s\n%s", got, c.want, s.sent)
			}
		})
	}
}

// Test_MD10_OllamaAddress checks the address and the key. If base_url ends with the path of OpenAI's API, the path is
// replaced by /api/chat.
func Test_MD10_OllamaAddress(t *testing.T) {
	for base, want := range map[string]string{
		"":                         "http://127.0.0.1:11434/api/chat",
		"http://h:1/v1/":           "http://h:1/api/chat",
		"http://h:1":               "http://h:1/api/chat",
		"http://h:1/api/chat":      "http://h:1/api/chat",
		"https://h/proxy/api/chat": "https://h/proxy/api/chat",
	} {
		s := &server{body: ended("stop")}
		m := open(t, s, func(c *model.Config) { c.BaseURL, c.APIKey = base, tenon.NewSecret("k-1") })
		if got := ask(t, m, hello); s.url != want || s.header.Get("Authorization") != "Bearer k-1" {
			t.Errorf("%q: %s, %v: %s", base, s.url, s.header, got)
		}
	}
	s := &server{body: ended("stop")}
	ask(t, open(t, s, nil), hello)
	if s.header.Get("Authorization") != "" {
		t.Errorf("a key is sent: %v", s.header)
	}
}

// Test_MD10_OllamaRequest checks whole requests.
func Test_MD10_OllamaRequest(t *testing.T) {
	const head, tail = `{"model":"qwen3:8b","stream":true`, `"options":{"num_predict":4096},"truncate":false,"shift":false`
	const hi = `,"messages":[{"role":"user","content":"Hi"}]}`
	const pixel = "aGVsbG8="
	tool := tenon.Tool{Name: "add", Description: "Adds.", Input: []byte(`{ "type": "object", "properties": {} }`)}
	const tools = `,"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{}}}}]`
	made := &tenon.Message{Role: tenon.RoleAssistant, By: "ollama/qwen3:8b", Parts: []tenon.Part{
		{Type: tenon.PartThinking, Text: "hm", Wire: "ollama", Raw: []byte(`"hm"`)}, {Type: tenon.PartText, Text: "Adding."},
		{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "call_1", Name: "add", Arguments: []byte(`{"a":9007199254740993}`)}},
		{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "call_2", Name: "add", Malformed: `{"a`}}}}
	other := &tenon.Message{Role: made.Role, Parts: made.Parts, By: "openai/gpt-5"}
	results := &tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{
		{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "call_1", Name: "add", Content: []tenon.Content{tenon.Text("3"),
			{Type: tenon.ContentImage, MimeType: "image/png", Data: pixel}}}},
		{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "call_2", Name: "add", IsError: true}}}}
	turn := func(thinking string) string {
		return `,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Adding."` + thinking +
			`,"tool_calls":[{"id":"call_1","function":{"index":0,"name":"add","arguments":{"a":9007199254740993}}},` +
			`{"id":"call_2","function":{"index":1,"name":"add","arguments":{"_invalid_json":"{\"a"}}}]},` +
			`{"role":"tool","tool_name":"add","tool_call_id":"call_1","content":"3\n[image image/png 5 bytes, in the following user message]"},` +
			`{"role":"tool","tool_name":"add","tool_call_id":"call_2","content":"Error: (empty result)"},` +
			`{"role":"user","content":"","images":["` + pixel + `"]}]}`
	}
	messages := func(m *tenon.Message) []*tenon.Message { return []*tenon.Message{tenon.UserMessage("Hi"), m, results} }
	media := &tenon.Message{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "What?"},
		{Type: tenon.PartImage, MimeType: "image/png", Data: pixel}, {Type: tenon.PartImage, URI: "https://example.com/a.png"},
		{Type: tenon.PartFile, MimeType: "application/pdf", Data: pixel, Text: "a.pdf"}, {Type: tenon.PartText, Text: "Well?"}}}
	for name, c := range map[string]struct {
		change func(*model.Config)
		req    *tenon.Request
		want   string
	}{
		"plain":         {nil, hello, head + "," + tail + hi},
		"tools":         {nil, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{tool}}, head + "," + tail + tools + hi},
		"no choice":     {nil, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{tool}, ToolChoice: "none"}, head + "," + tail + hi},
		"one of two":    {nil, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{{Name: "x"}, tool}, ToolChoice: "auto:add"}, head + "," + tail + tools + hi},
		"one":           {nil, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{{Name: "x"}, tool}, ToolChoice: "add"}, head + "," + tail + tools + hi},
		"no tools":      {func(c *model.Config) { c.ToolMode = "none" }, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{tool}}, head + "," + tail + hi},
		"object":        {nil, &tenon.Request{Messages: hello.Messages, Output: []byte(`{"type":"object"}`)}, head + `,"format":"json",` + tail + hi},
		"schema":        {nil, &tenon.Request{Messages: hello.Messages, Output: []byte(`{"type":"object", "required":["a"]}`)}, head + `,"format":{"type":"object","required":["a"]},` + tail + hi},
		"schema, tools": {nil, &tenon.Request{Messages: hello.Messages, Tools: []tenon.Tool{tool}, Output: []byte(`{"type":"object", "required":["a"]}`)}, head + "," + tail + tools + hi},
		"turn":          {nil, &tenon.Request{System: "Be brief.", Messages: messages(made)}, head + "," + tail + turn(`,"thinking":"hm"`)},
		"another model": {nil, &tenon.Request{System: "Be brief.", Messages: messages(other)}, head + "," + tail + turn("")},
		"media": {nil, &tenon.Request{Messages: []*tenon.Message{media}}, head + "," + tail + `,"messages":[{"role":"user","content":"What?\n\n` +
			`[image at https://example.com/a.png: this model does not read it]\n\n[resource a.pdf application/pdf 5 bytes]\n\nWell?","images":["` + pixel + `"]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{body: ended("stop")}
			got := ask(t, open(t, s, c.change), c.req)
			if d := cmp.Diff(c.want, s.sent); d != "" {
				t.Errorf("%s\n%s", d, got)
			}
		})
	}
}

// FuzzOllamaStream checks that any lines result in an answer or an error.
func FuzzOllamaStream(f *testing.F) {
	f.Add(chunk(`"content":"x","thinking":"y","tool_calls":[{"id":"1","function":{"name":"f","arguments":{"a":1}}}]`) + ended("stop"))
	f.Add(`{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{"}}]},"logprobs":[{}],"done":true}`)
	f.Add(`{"error":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := ollama.Parse(ollama.Lines(strings.NewReader(body)), func(tenon.Delta) bool { return true })
		if (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, c := range r.Message.Calls() {
			if c.Name == "" || c.ID == "" || ids[c.ID] || (c.Malformed == "") == (len(c.Arguments) == 0) {
				t.Errorf("call %+v", c)
			}
			ids[c.ID] = true
		}
	})
}
