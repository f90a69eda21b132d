package testserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// pixel is a PNG of one pixel, 68 bytes.
var pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAA" +
	"AAYAAjCB0C8AAAAASUVORK5CYII=")

// handler runs a tool and returns the raw result.
type handler func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error)

// entry describes one tool.
type entry struct {
	name, description string
	properties        string // properties of the input schema, without braces
	required          string // JSON array; "" for none
	hints             string // annotations, without braces
	call              handler
}

const (
	reads   = `"readOnlyHint":true,"openWorldHint":false`
	changes = `"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false`
)

func (s *server) table() []entry {
	return []entry{
		{"add", "Adds two numbers",
			`"a":{"type":"number","description":"the first"},"b":{"type":"number","description":"the second"}`,
			`["a","b"]`, reads, add},
		{"greet", "Greets a person",
			`"name":{"type":"string","description":"whom"},"formal":{"type":"boolean","default":false}`, `["name"]`,
			reads, greet},
		{"reverse_string", "Reverses a text", `"text":{"type":"string"}`, `["text"]`, reads, reverse},
		{"echo", "Gives back its arguments", ``, ``, reads,
			func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				return textResult(string(r.Arguments)), nil
			}},
		{"get_weather", "The weather at a place", `"location":{"type":"string","description":"City name"}`,
			`["location"]`, reads, weather},
		{"slow", "Takes its time, with progress",
			`"ms":{"type":"integer","default":300},"steps":{"type":"integer","default":3}`, ``, reads, s.slow},
		{"fail", "Reports a failure", ``, ``, reads,
			func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) { return nil, errors.New("boom") }},
		{"fail_rpc", "Answers with a JSON-RPC error", ``, ``, reads,
			func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "bad input",
					Data: json.RawMessage(`{"field":"x","id":9007199254740993}`)}
			}},
		{"image", "Gives a small image", ``, ``, reads,
			fixed(`{"content":[{"type":"image","data":"` + base64.StdEncoding.EncodeToString(pixel) +
				`","mimeType":"image/png"}]}`)},
		{"big", "Gives a large text", `"bytes":{"type":"integer","default":5000000}`, ``, reads, large},
		{"counter", "Counts its calls", ``, ``, changes, s.count1},
		{"structured", "Gives structured content", ``, ``, reads,
			fixed(
				`{"content":[{"type":"text","text":"{\"id\":9007199254740993,\"value\":1.0}"}],` +
					`"structuredContent":{"id":9007199254740993,"value":1.0},"x-vendor":{"kept":true}}`)},
		{"empty", "Gives nothing", ``, ``, reads, fixed(`{"content":[]}`)},
		{"weird", "Gives content of an unknown kind", ``, ``, reads,
			fixed(`{"content":[{"type":"weird","x":9007199254740993}]}`)},
		{"multi", "Gives several blocks", ``, ``, reads,
			fixed(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"` +
				base64.StdEncoding.EncodeToString(pixel) + `","mimeType":"image/png"},{"type":"text","text":"b"}]}`)},
		{"resource", "Gives an embedded resource", ``, ``, reads,
			fixed(
				`{"content":[{"type":"resource","resource":{"uri":"test://a","mimeType":"application/octet-stream",` +
					`"blob":"AAEC"}}]}`)},
		{"link", "Gives a link to a resource", ``, ``, reads,
			fixed(`{"content":[{"type":"resource_link","uri":"test://a","name":"a","mimeType":"text/plain"}]}`)},
		{"crash", "Ends the process", ``, ``, changes, s.crash},
		{"echo_env", "Gives an environment variable", `"name":{"type":"string"}`, `["name"]`, reads, echoEnv},
		{"log", "Writes one log message of each level", ``, ``, reads, logAll},
		{"mutate", "Adds a tool and a prompt", ``, ``, changes, s.mutate},
		{"get_bank_balance", "Gets the balance of an account",
			`"account_id":{"type":"string"},"date":{"type":"string"}`, `["account_id"]`, reads, bankBalance},
		{"read.file", "A name with a point", ``, ``, reads, fixed(`{"content":[{"type":"text","text":"read.file"}]}`)},
		{"a/b", "A name with a slash", ``, ``, reads, fixed(`{"content":[{"type":"text","text":"a/b"}]}`)},
		{"x y", "A name with a blank", ``, ``, reads, fixed(`{"content":[{"type":"text","text":"x y"}]}`)},
		{"ask", "Asks for a name before it answers (2026-07-28)", ``, ``, changes, ask},
	}
}

// tools returns the offered tools.
func (s *server) tools() []mcp.ServerTool {
	var list []mcp.ServerTool
	if s.o.Tools < 0 {
		for _, e := range slices.Concat(s.table(), s.askers(), s.taskers()) {
			list = append(list, s.tool(e))
		}
	}
	for i := range max(s.o.Tools, 0) + s.o.More {
		e := entry{name: fmt.Sprintf("tool_%04d", i+1), description: "One of many", hints: reads,
			properties: `"text":{"type":"string"}`, call: fixed(`{"content":[{"type":"text","text":"ok"}]}`)}
		list = append(list, s.tool(e))
	}
	return s.offered(append(list, s.extra()...))
}

// extra returns the tools of a file. The file may change between two starts of the server.
func (s *server) extra() (list []mcp.ServerTool) {
	if s.o.Extra == "" {
		return nil
	}
	f, err := os.Open(s.o.Extra)
	if err != nil {
		fmt.Fprintln(s.stderr, "testserver: extra:", err)
		return nil
	}
	defer f.Close() // opened for reading only
	for d := json.NewDecoder(f); ; {
		var e struct{ Definition, Result json.RawMessage }
		if err := d.Decode(&e); err != nil {
			if err != io.EOF {
				fmt.Fprintln(s.stderr, "testserver: extra:", err)
			}
			return list
		}
		if e.Result == nil {
			e.Result = json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)
		}
		list = append(list, mcp.ServerTool{Definition: e.Definition, Call: s.counted("extra", fixed(string(e.Result)))})
	}
}

func (s *server) tool(e entry) mcp.ServerTool {
	required := ""
	if e.required != "" {
		required = `,"required":` + e.required
	}
	if e.name == "later" {
		e.hints += `,"title":"Takes its time"`
		required += `},"icons":[{"src":"https://example.com/later.png","mimeType":"image/png"}],` +
			`"execution":{"taskSupport":"required"},"_meta":{"example.com/rank":9007199254740993`
	}
	def := fmt.Sprintf(
		`{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":{%s}%s},"annotations":{%s},`+
			`"x-vendor":{"kept":true}}`,
		e.name, e.description, e.properties, required, e.hints)
	return mcp.ServerTool{Definition: json.RawMessage(def), Call: s.counted(e.name, e.call)}
}

// counted wraps a call and counts running calls.
func (s *server) counted(name string, call handler) handler {
	return func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		s.count(func(st *Stats) {
			st.InFlight++
			st.MaxInFlight = max(st.MaxInFlight, st.InFlight)
			if len(st.Tools) < maxKept {
				st.Tools = append(st.Tools, name)
			}
			if r.Key != "" && len(st.Keys) < maxKept {
				st.Keys = append(st.Keys, r.Key)
			}
		})
		defer s.count(func(st *Stats) { st.InFlight-- })
		if err := s.effect(r.Key, name); err != nil {
			return nil, err
		}
		result, err := call(ctx, r)
		if s.o.Bare && err == nil {
			result = bare(result)
		}
		return result, err
	}
}

// bare removes the content from a result, like servers of plain JSON-RPC: the result is the value of the
// text.
func bare(result json.RawMessage) json.RawMessage {
	var r struct{ Content []struct{ Text string } }
	if json.Unmarshal(result, &r) != nil || len(r.Content) != 1 {
		return json.RawMessage("{}")
	}
	text := []byte(r.Content[0].Text)
	if !json.Valid(text) {
		text = rawjson.AppendString(nil, r.Content[0].Text)
	}
	return append(append([]byte(`{"result":`), text...), '}')
}

func fixed(result string) handler {
	return func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) { return json.RawMessage(result), nil }
}

func textResult(text string) json.RawMessage {
	b := append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendString(nil, text)...)
	return append(b, `}]}`...)
}

func arguments[T any](r *mcp.ToolRequest) (T, error) {
	var v T
	if err := json.Unmarshal(r.Arguments, &v); err != nil {
		return v, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "arguments: %s", err)
	}
	return v, nil
}

func bankBalance(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct {
		Account string `json:"account_id"`
		Date    string `json:"date"`
	}](r)
	if err != nil {
		return nil, err
	}
	text := "Account " + in.Account + ": 1234.56"
	if in.Date != "" {
		text += " on " + in.Date
	}
	return textResult(text), nil
}

// add adds numbers of any size exactly.
func add(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ A, B json.Number }](r)
	if err != nil {
		return nil, err
	}
	if len(in.A) > 400 || len(in.B) > 400 || strings.ContainsAny(string(in.A+in.B), "eE") {
		return nil, errors.New("these numbers are too much for a test server")
	}
	a, okA := new(big.Rat).SetString(string(in.A))
	b, okB := new(big.Rat).SetString(string(in.B))
	if !okA || !okB {
		return nil, errors.New("a and b must be numbers")
	}
	sum := a.Add(a, b)
	if sum.IsInt() {
		return textResult(sum.Num().String()), nil
	}
	return textResult(strings.TrimRight(sum.FloatString(20), "0")), nil
}

func greet(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct {
		Name   string
		Formal bool
	}](r)
	if in.Formal {
		return textResult("Good day, " + in.Name + "."), err
	}
	return textResult("Hello, " + in.Name + "!"), err
}

func reverse(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ Text string }](r)
	runes := []rune(in.Text)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return textResult(string(runes)), err
}

func weather(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ Location string }](r)
	known := map[string]string{"london": "15°C, Cloudy", "paris": "18°C, Sunny", "rome": "24°C, Sunny",
		"oslo": "4°C, Snow"}
	w, ok := known[strings.ToLower(in.Location)]
	if !ok {
		w = "20°C, Clear"
	}
	return textResult(w), err
}

func (s *server) slow(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ Ms, Steps *int }](r)
	if err != nil {
		return nil, err
	}
	ms, steps := 300, 3
	if in.Ms != nil {
		ms = min(max(*in.Ms, 0), 600_000)
	}
	if in.Steps != nil {
		steps = min(max(*in.Steps, 1), 100_000)
	}
	for i := range steps {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond / time.Duration(steps)):
		case <-ctx.Done():
			return nil, errors.New("cancelled")
		}
		r.Progress(float64(i+1), float64(steps), fmt.Sprintf("step %d", i+1))
	}
	return textResult(fmt.Sprintf("done after %d ms", ms)), nil
}

func large(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ Bytes *int }](r)
	n := 5_000_000
	if in.Bytes != nil {
		n = min(max(*in.Bytes, 0), 1<<30)
	}
	const line = "0123456789 the quick brown fox jumps over the lazy dog\n"
	return textResult(strings.Repeat(line, n/len(line)+1)[:n]), err
}

func (s *server) count1(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	s.mu.Lock()
	s.counter++
	n := s.counter
	s.mu.Unlock()
	return textResult(fmt.Sprint(n)), nil
}

// effect appends a line for a call before the call has any effect. Kill tests count the lines.
func (s *server) effect(key, name string) error {
	if s.o.Effects == "" {
		return nil
	}
	f, err := os.OpenFile(s.o.Effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", key, name)
	return errors.Join(err, f.Close())
}

func (s *server) crash(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	fmt.Fprintln(s.stderr, "testserver: crashing as told")
	os.Exit(3)
	return nil, nil
}

func echoEnv(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ Name string }](r)
	return textResult(os.Getenv(in.Name)), err
}

func logAll(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	for _, level := range []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		r.Log(level, "a message of level "+level)
	}
	return textResult("logged"), nil
}

// mutate adds the tool added, the prompt added_prompt and, with --prompts, the resource test://added. The next call
// removes them again. It notifies the clients, and reports the resource test://a as updated.
func (s *server) mutate(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	s.mu.Lock()
	s.mutated = !s.mutated
	mutated := s.mutated
	s.mu.Unlock()
	list, done := s.tools(), "removed"
	if mutated {
		done = "added"
		list = append(list, s.tool(entry{name: "added", description: "Came later", hints: reads,
			call: fixed(`{"content":[{"type":"text","text":"I am new"}]}`)}))
	}
	s.srv.ListChanged("prompts")
	s.srv.ListChanged("resources")
	s.srv.ResourceUpdated(watchedURI, nil)
	return textResult(done), s.srv.SetTools(list)
}

// ask asks for a name with a multi-round-trip request.
func ask(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	if len(r.Responses) == 0 {
		return json.RawMessage(
			`{"resultType":"input_required","requestState":"state-1",` +
				`"inputRequests":{"name":{"method":"elicitation/create","params":{"message":"Your name?",` +
				`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`), nil
	}
	name := rawjson.String(rawjson.Field(rawjson.Field(rawjson.Field(r.Responses, "name"), "content"), "name"))
	return textResult("Hello, " + name + " (" + r.State + ")"), nil
}
