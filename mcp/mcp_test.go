package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is one end of a stream within the process. The other end is r and w.
type pipe struct {
	*transport.Lines
	ours []io.Closer
}

func (p *pipe) Close() error {
	_ = p.Lines.Close()
	for _, c := range p.ours {
		_ = c.Close()
	}
	return nil
}

func newPipe() (p *pipe, r io.Reader, w io.WriteCloser) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	return &pipe{Lines: transport.NewLines(inR, outW, 1<<20), ours: []io.Closer{inR, outW}}, outR, inW
}

// fake returns a dial function for a server that play simulates line by line. send writes a line. conn is the number of
// the connection, from 1.
func fake(t *testing.T, play func(conn int, line string, send func(string)) (goOn bool)) func(context.Context) (mcp.Stream, error) {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	var n atomic.Int32
	return func(context.Context) (mcp.Stream, error) {
		p, r, w := newPipe()
		conn := int(n.Add(1))
		wg.Go(func() {
			lines := bufio.NewReader(r)
			for {
				line, err := lines.ReadString('\n')
				if err != nil || !play(conn, line, func(s string) { _, _ = io.WriteString(w, s+"\n") }) {
					break
				}
			}
			_ = w.Close()
			_, _ = io.Copy(io.Discard, lines) // discard what the client sends until it closes
		})
		return p, nil
	}
}

type request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

func parse(line string) request {
	var r request
	_ = json.Unmarshal([]byte(line), &r)
	return r
}

func result(r request, body string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, body)
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"9"}}`

// legacy plays a legacy server. call answers tools/call and tools/list; all other requests succeed.
func legacy(call func(r request, send func(string)) bool) func(int, string, func(string)) bool {
	return func(_ int, line string, send func(string)) bool {
		r := parse(line)
		switch {
		case r.Method == "server/discover":
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID))
		case r.Method == "initialize":
			send(result(r, hello))
		case r.Method == "tools/call" || r.Method == "tools/list":
			return call(r, send)
		}
		return true
	}
}

func connect(t *testing.T, cfg mcp.ClientConfig) *mcp.Client {
	t.Helper()
	return connectIn(t.Context(), t, cfg)
}

// connectIn connects within the deadline of the context, whatever the timeout of a request.
func connectIn(ctx context.Context, t *testing.T, cfg mcp.ClientConfig) *mcp.Client {
	t.Helper()
	if cfg.DiscoverTimeout == 0 {
		cfg.DiscoverTimeout = 100 * time.Millisecond
	}
	c, err := mcp.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func tool(def string, call func(context.Context, *mcp.ToolRequest) (json.RawMessage, error)) mcp.ServerTool {
	return mcp.ServerTool{Definition: json.RawMessage(def), Call: call}
}

func echo(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"hi","x":1}],"structuredContent":{"id":9007199254740993,"v":1.0,"args":` + string(r.Arguments) + `},"vendor":{"a":[1, 2]}}`), nil
}

// ends returns endsOf for a new server.
func ends(t *testing.T, cfg mcp.ServerConfig) map[string]func(context.Context) (mcp.Stream, error) {
	t.Helper()
	s, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return endsOf(t, s)
}

// endsOf serves a server over each transport. It returns the dial functions by name.
func endsOf(t *testing.T, s *mcp.Server) map[string]func(context.Context) (mcp.Stream, error) {
	t.Helper()
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return map[string]func(context.Context) (mcp.Stream, error){
		"stdio": func(context.Context) (mcp.Stream, error) {
			p, r, w := newPipe()
			lines := transport.NewLines(r, w, 0)
			wg.Go(func() {
				_ = s.Serve(context.Background(), lines)
				_ = lines.Close()
				_ = w.Close()
			})
			return p, nil
		},
		"http": func(context.Context) (mcp.Stream, error) {
			return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
		},
	}
}

func TestEras(t *testing.T) {
	def := `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":"no"},"execution":{"x":1}}`
	for name, era := range map[string]mcp.ServerConfig{"both": {}, "legacy": {NoModern: true}, "modern": {NoLegacy: true}} {
		era.Tools = []mcp.ServerTool{tool(def, echo)}
		for kind, dial := range ends(t, era) {
			t.Run(name+" "+kind, func(t *testing.T) {
				c := connect(t, mcp.ClientConfig{Dial: dial})
				if got := c.Info().IsModern(); got != (name != "legacy") {
					t.Errorf("modern %v", got)
				}
				tools, err := c.Tools(t.Context())
				if err != nil || len(tools) != 1 || tools[0].Remote != "echo" || !tools[0].Annotations.IsReadOnly() || tools[0].Annotations.Idempotent != nil {
					t.Fatalf("tools %+v, error %v", tools, err)
				}
				if string(tools[0].Raw) != def {
					t.Errorf("W6: the definition came as %s", tools[0].Raw)
				}
				r, err := c.Call(t.Context(), tenon.Call{Tool: "echo", Arguments: json.RawMessage(`{"n":9007199254740993,"f":1.0}`)})
				if err != nil {
					t.Fatal(err)
				}
				b := r.Raw
				for _, want := range []string{`"id":9007199254740993,"v":1.0`, `{"n":9007199254740993,"f":1.0}`, `"vendor":{"a":[1, 2]}`, `"x":1`} {
					if !strings.Contains(string(b), want) {
						t.Errorf("W4: %s is not in %s", want, b)
					}
				}
				if r.Text() != "hi" {
					t.Errorf("text %q", r.Text())
				}
				_, err = c.Call(t.Context(), tenon.Call{Tool: "nope"})
				if tenon.ErrorCode(err) != tenon.CodeTool || !strings.Contains(err.Error(), "-32602") {
					t.Errorf("unknown tool: %v", err)
				}
			})
		}
	}
}

func TestProgressAndCancel(t *testing.T) {
	cancelled := make(chan struct{}, 10)
	slow := func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		for i := range 3 {
			r.Progress(float64(i+1), 3, "")
		}
		if string(r.Arguments) == `{"wait":true}` {
			<-ctx.Done()
			cancelled <- struct{}{}
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
	for name, era := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {}} {
		era.Tools = []mcp.ServerTool{tool(`{"name":"slow"}`, slow)}
		for kind, dial := range ends(t, era) {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				const limit = 2 * time.Second // much longer than a call takes
				c := connect(t, mcp.ClientConfig{Dial: dial, RequestTimeout: limit})
				var got []float64
				if _, err := c.Call(t.Context(), tenon.Call{Tool: "slow", Progress: func(p tenon.Progress) { got = append(got, p.Progress) }}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]float64{1, 2, 3}, got); diff != "" {
					t.Error(diff)
				}
				_, err := c.Call(t.Context(), tenon.Call{Tool: "slow", Arguments: json.RawMessage(`{"wait":true}`)})
				if tenon.ErrorCode(err) != tenon.CodeTimeout || !strings.Contains(err.Error(), "timed out after 2s") {
					t.Errorf("error %v", err)
				}
				select {
				case <-cancelled:
				case <-time.After(time.Minute):
					t.Error("the server was not told")
				}
				if _, err := c.Call(t.Context(), tenon.Call{Tool: "slow"}); err != nil {
					t.Errorf("the connection did not go on: %v", err)
				}
			})
		}
	}
}

func TestListChanged(t *testing.T) {
	for name, era := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {}} {
		era.Tools = []mcp.ServerTool{tool(`{"name":"a"}`, echo)}
		s, err := mcp.NewServer(era)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
		t.Cleanup(web.Close)
		t.Run(name+" http", func(t *testing.T) {
			changed := make(chan string, 10)
			c := connect(t, mcp.ClientConfig{Changed: func(l string) { changed <- l },
				Dial: func(context.Context) (mcp.Stream, error) {
					return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
				}})
			// The stream of notifications opens in the background, so the change is repeated until the client notices
			// it.
			for deadline := time.Now().Add(time.Minute); ; {
				if err := s.SetTools([]mcp.ServerTool{tool(`{"name":"b"}`, echo)}); err != nil {
					t.Fatal(err)
				}
				select {
				case l := <-changed:
					if l != "tools" {
						t.Errorf("changed %q", l)
					}
				case <-time.After(50 * time.Millisecond):
					if time.Now().After(deadline) {
						t.Fatal("nobody was told")
					}
					continue
				}
				break
			}
			tools, err := c.Tools(t.Context())
			if err != nil || len(tools) != 1 || tools[0].Remote != "b" {
				t.Errorf("tools %v, error %v", tools, err)
			}
		})
	}
}

// sendOK answers a call with the text ok.
func sendOK(r request, send func(string)) bool {
	send(result(r, `{"content":[{"type":"text","text":"ok"}]}`))
	return true
}

// longAtFirst answers the first call with a line over the limit, and later calls with ok.
func longAtFirst() func(request, func(string)) bool {
	first := true
	return func(r request, send func(string)) bool {
		if first {
			first = false
			send(result(r, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`))
			return true
		}
		return sendOK(r, send)
	}
}

func callX(t *testing.T, c *mcp.Client) (*tenon.Result, error) {
	return c.Call(t.Context(), tenon.Call{Tool: "x"})
}

// answersOK checks that a call returns ok after an earlier fault.
func answersOK(t *testing.T, c *mcp.Client) {
	t.Helper()
	if r, err := callX(t, c); err != nil || r.Text() != "ok" {
		t.Errorf("call %v, error %v", r, err)
	}
}

// weakness is a fault of a server, and a check that the client survives it.
type weakness struct {
	name  string
	play  func(conn int, line string, send func(string)) bool
	check func(t *testing.T, c *mcp.Client)
}

// oddMessages are messages that violate the protocol.
var oddMessages = []weakness{
	{"W1 discover is ignored", func(conn int, line string, send func(string)) bool {
		if conn == 1 {
			return true
		}
		return legacy(sendOK)(conn, line, send)
	}, answersOK},
	{"W2 the server ends at discover", func(conn int, line string, send func(string)) bool {
		if conn == 1 {
			return false
		}
		return legacy(sendOK)(conn, line, send)
	}, answersOK},
	{"W3 lines that are no JSON", func(conn int, line string, send func(string)) bool {
		send("starting \x1b[31mup\x1b[0m\n\n{\"half\":")
		return legacy(sendOK)(conn, line, send)
	}, answersOK},
	{"W5 content of an unknown kind", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"content":[{"type":"weird","x":9007199254740993},{"type":"text","text":"ok"}]}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		r, err := callX(t, c)
		if err != nil || len(r.Content) != 2 || string(r.Content[0].Raw) != `{"type":"weird","x":9007199254740993}` || r.Text() != "ok" {
			t.Errorf("result %+v, error %v", r, err)
		}
	}},
	{"input_required of a legacy server", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"resultType":"input_required","inputRequests":5}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeProtocol {
			t.Errorf("error %v", err)
		}
	}},
	{"content that is no array", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"content":"hi"}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeProtocol {
			t.Errorf("error %v", err)
		}
	}},
	{"W7 a result of an unknown type", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"resultType":"task","taskId":"1"}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeProtocol || !strings.Contains(err.Error(), `resultType "task"`) {
			t.Errorf("error %v", err)
		}
	}},
	{"W8 the data of an error", legacy(func(r request, send func(string)) bool {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad input","data":{"id":9007199254740993}}}`, r.ID))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		_, err := callX(t, c)
		var e *tenon.Error
		var rpc *jsonrpc.Error
		if !errors.As(err, &e) || string(e.Data) != `{"id":9007199254740993}` || !errors.As(err, &rpc) || rpc.Code != -32602 {
			t.Errorf("error %+v", err)
		}
	}},
	{"W9 the server ends during a call", legacy(func(request, func(string)) bool { return false }), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeUnknown {
			t.Errorf("error %v", err)
		}
		<-c.Done()
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeUnreachable {
			t.Errorf("the next call: %v", err)
		}
	}},
	{"W15 the id comes back as a string", legacy(func(r request, send func(string)) bool {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"ok"}]}}`, r.ID))
		return true
	}), answersOK},
	{"W16 answers to nobody", legacy(func(r request, send func(string)) bool {
		send(`{"jsonrpc":"2.0","id":{},"result":{}}`)
		send(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		return sendOK(r, send)
	}), answersOK},
	{"W17 a key twice", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"content":[],"content":[{"type":"text","text":"other"}]}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if r, err := callX(t, c); err == nil {
			t.Errorf("took %s", r.Raw)
		}
	}},
	{"W18 a key in other case", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"Content":[{"type":"text","text":"other"}],"content":[{"type":"text","text":"ok"}]}`))
		return true
	}), answersOK},
	{"W13 tools that cannot be read", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"tools":[{},{"name":7},"x",null,{"name":"a","inputSchema":true},{"name":"b","inputSchema":null},{"name":"c","inputSchema":{"anyOf":[]}},{"name":"a"}]}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		tools, err := c.Tools(t.Context())
		if err != nil || len(tools) != 3 {
			t.Errorf("tools %+v, error %v", tools, err)
		}
	}},
	{"a server without the list", legacy(func(r request, send func(string)) bool {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, r.ID))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if tools, err := c.Tools(t.Context()); err != nil || len(tools) != 0 {
			t.Errorf("tools %v, error %v", tools, err)
		}
	}},
	{"requests of the server", legacy(func(r request, send func(string)) bool {
		send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		send(`{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}`)
		return sendOK(r, send)
	}), answersOK},
}

// floods are messages that exceed a limit.
var floods = []weakness{
	{"L4 a line over the limit", legacy(longAtFirst()), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); tenon.ErrorCode(err) != tenon.CodeTooLarge {
			t.Errorf("error %v", err)
		}
		answersOK(t, c)
	}},
	{"L5 a cursor for ever", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"tools":[{"name":"x"}],"nextCursor":"again"}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := c.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeProtocol {
			t.Errorf("error %v", err)
		}
	}},
	{"L6 too many tools", legacy(func(r request, send func(string)) bool {
		send(result(r, `{"tools":[`+strings.Repeat(`{"name":"x"},`, 30_000)+`{"name":"y"}]}`))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := c.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeTooLarge {
			t.Errorf("error %v", err)
		}
	}},
	{"L7 a deep message", legacy(func(r request, send func(string)) bool {
		send(result(r, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)))
		return true
	}), func(t *testing.T, c *mcp.Client) {
		if _, err := callX(t, c); err == nil {
			t.Error("took it")
		}
	}},
	{"L8 a flood of progress", legacy(func(r request, send func(string)) bool {
		flood := strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`+"\n", 50_000)
		send(flood + result(r, `{"content":[{"type":"text","text":"ok"}]}`))
		return true
	}), answersOK},
}

// TestWeaknesses has one row for each known weakness of other clients that shows on a stream.
func TestWeaknesses(t *testing.T) {
	for _, tt := range slices.Concat(oddMessages, floods) {
		t.Run(tt.name, func(t *testing.T) {
			tt.check(t, connect(t, mcp.ClientConfig{Dial: fake(t, tt.play), RequestTimeout: 5 * time.Second}))
		})
	}
}

func TestW20_NothingIsDeclaredByDefault(t *testing.T) {
	var got string
	connect(t, mcp.ClientConfig{Dial: fake(t, func(_ int, line string, send func(string)) bool {
		r := parse(line)
		if r.Method == "initialize" {
			got = string(r.Params)
		}
		return legacy(nil)(0, line, send)
	})})
	if !strings.Contains(got, `"capabilities":{}`) {
		t.Errorf("initialize says %s", got)
	}
}

func TestConnectErrors(t *testing.T) {
	tests := []struct {
		name string
		play func(int, string, func(string)) bool
		code tenon.Code
	}{
		{"L9 never answers", func(int, string, func(string)) bool { return true }, tenon.CodeTimeout},
		{"always ends", func(int, string, func(string)) bool { return false }, tenon.CodeUnreachable},
		{"a version that is not known", func(_ int, line string, send func(string)) bool {
			send(result(parse(line), `{"protocolVersion":"1999-01-01"}`))
			return true
		}, tenon.CodeProtocol},
		{"refuses", func(_ int, line string, send func(string)) bool {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"go away"}}`, parse(line).ID))
			return true
		}, tenon.CodeProtocol},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			limit := time.Minute
			if tt.code == tenon.CodeTimeout {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := mcp.Connect(ctx, mcp.ClientConfig{Dial: fake(t, tt.play), DiscoverTimeout: 50 * time.Millisecond})
			if tenon.ErrorCode(err) != tt.code {
				t.Errorf("error %v (%s), want %s", err, tenon.ErrorCode(err), tt.code)
			}
		})
	}
}

func TestInputRequired(t *testing.T) {
	ask := func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		if len(r.Responses) == 0 {
			return json.RawMessage(`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}},"requestState":"a\"b"}`), nil
		}
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.AppendString(nil, r.State+" "+string(r.Responses))) + `}]}`), nil
	}
	for kind, dial := range ends(t, mcp.ServerConfig{Tools: []mcp.ServerTool{tool(`{"name":"ask"}`, ask)}}) {
		t.Run(kind, func(t *testing.T) {
			c := connect(t, mcp.ClientConfig{Dial: dial})
			r, err := c.Call(t.Context(), tenon.Call{Tool: "ask"})
			if err != nil || r.Input == nil || r.Input.State != `a"b` || string(r.Input.Requests) != `{"k":{"method":"elicitation/create"}}` {
				t.Fatalf("result %+v, error %v", r, err)
			}
			r, err = c.Call(t.Context(), tenon.Call{Tool: "ask", Input: &tenon.InputAnswer{State: r.Input.State, Responses: json.RawMessage(`{"k":{"action":"accept"}}`)}})
			if err != nil || r.Text() != `a"b {"k":{"action":"accept"}}` {
				t.Errorf("result %+v, error %v", r, err)
			}
		})
	}
}

// TestInputRequiredByAStateAlone checks that an input_required result needs no requests if it has a state.
func TestInputRequiredByAStateAlone(t *testing.T) {
	for _, raw := range []string{`{"resultType":"input_required","requestState":"s"}`, `{"resultType":"input_required","inputRequests":null,"requestState":"s"}`} {
		if r, err := mcp.ParseResult([]byte(raw), true); err != nil || r.Input == nil || r.Input.State != "s" || len(r.Input.Requests) != 0 {
			t.Errorf("%s: %+v, %v", raw, r, err)
		}
	}
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"a","blob":"AA"}}],"isError":true}`))
	f.Add([]byte(`{"resultType":"input_required","requestState":"s"}`))
	for _, odd := range []string{`"hi"`, `[{"type":5}]`, `[{"type":"text","text":5}]`, `["x",7,null]`, `[{"type":"resource","resource":"x"}]`, `[{"type":"image","data":5}]`, `null`} {
		f.Add([]byte(`{"content":` + odd + `,"isError":"yes"}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if jsonrpc.Valid(raw) != nil {
			return // the peer refuses such a message before it is parsed
		}
		r, err := mcp.ParseResult(raw, true)
		if err != nil {
			return
		}
		// A result that is accepted from a server must survive the journal.
		b, err := json.Marshal(map[string]any{"result": r})
		var again struct{ Result *tenon.Result }
		if err != nil || json.Unmarshal(b, &again) != nil || len(again.Result.Content) != len(r.Content) || again.Result.Text() != r.Text() || again.Result.IsError != r.IsError {
			t.Errorf("%q became %q, error %v", raw, b, err)
		}
	})
}
