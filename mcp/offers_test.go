package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// scripted is a server over HTTP with one answer for each method: a result, an error object, or "" for 404. It logs the
// requests.
type scripted struct {
	url string
	mu  sync.Mutex
	log []*http.Request
}

func script(t *testing.T, answer func(method string, r *http.Request) (result, rpcError string)) *scripted {
	t.Helper()
	s := &scripted{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		s.mu.Lock()
		s.log = append(s.log, r)
		s.mu.Unlock()
		result, rpcError := answer(m.Method, r)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case result != "":
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
		case rpcError != "":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":`+rpcError+`}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *scripted) dial(t *testing.T) *mcp.Client {
	t.Helper()
	return connect(t, mcp.ClientConfig{Protocol: mcp.Modern, Dial: func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: s.url})
	}})
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}}`

// TestParamHeaders checks that arguments are sent in headers if the tool's schema requires it (2026-07-28, transports).
// A client with an old list must list the tools again and repeat the call once.
func TestParamHeaders(t *testing.T) {
	var header atomic.Value
	header.Store("Region")
	s := script(t, func(method string, r *http.Request) (string, string) {
		switch method {
		case "server/discover":
			return discovered, ""
		case "tools/list":
			return `{"tools":[{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
				{"name":"good","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"` + header.Load().(string) + `"}}}}]}`, ""
		case "tools/call":
			if r.Header.Get("Mcp-Param-"+header.Load().(string)) != "eu" {
				return "", `{"code":-32020,"message":"header mismatch"}`
			}
			return `{"content":[]}`, ""
		}
		return "", ""
	})
	c := s.dial(t)
	call := tenon.Call{Tool: "good", Arguments: json.RawMessage(`{"region":"eu"}`)}
	if _, err := c.Call(t.Context(), call); err != nil { // without a list, so at first without the header
		t.Fatal(err)
	}
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Remote != "good" {
		t.Fatalf("%v %v", tools, err)
	}
	header.Store("Zone")
	if _, err := c.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	call.Arguments = json.RawMessage(`{"region":"us"}`)
	if _, err := c.Call(t.Context(), call); tenon.ErrorCode(err) != tenon.CodeTool || !strings.Contains(err.Error(), "header mismatch") {
		t.Errorf("a second refusal: %v", err)
	}
}

func TestPromptsAndResources(t *testing.T) {
	s := script(t, func(method string, _ *http.Request) (string, string) {
		switch method {
		case "server/discover":
			return discovered, ""
		case "prompts/list":
			return `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}],"x":1},{"title":"no name"}]}`, ""
		case "prompts/get":
			return `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`, ""
		case "resources/list":
			return `{"resources":[{"uri":"test://a","name":"a","mimeType":"text/plain","size":3}]}`, ""
		case "resources/templates/list":
			return `{"resourceTemplates":[{"uriTemplate":"test://{x}","name":"t"},{"name":"neither"}]}`, ""
		case "resources/read":
			return `{"contents":[{"uri":"test://a","mimeType":"text/plain","text":"abc"},{"uri":"test://a/b","blob":"AA=="}]}`, ""
		}
		return "", ""
	})
	c := s.dial(t)
	prompts, err := c.Prompts(t.Context())
	if err != nil || len(prompts) != 1 || !prompts[0].Arguments[0].Required || !strings.Contains(string(prompts[0].Raw), `"x":1`) {
		t.Errorf("prompts %+v %v", prompts, err)
	}
	if raw, err := c.Prompt(t.Context(), "p", map[string]string{"a": "b"}); err != nil || !strings.Contains(string(raw), `"hi"`) {
		t.Errorf("prompt %s %v", raw, err)
	}
	resources, err := c.Resources(t.Context())
	if err != nil || len(resources) != 2 || resources[0].Size != 3 || resources[1].Template != "test://{x}" {
		t.Errorf("resources %+v %v", resources, err)
	}
	contents, err := c.Read(t.Context(), "test://a")
	if err != nil || len(contents) != 2 {
		t.Fatalf("contents %+v %v", contents, err)
	}
	got := [][4]string{}
	for _, x := range contents {
		got = append(got, [4]string{x.Type, x.URI, x.Text, x.Data})
	}
	if diff := cmp.Diff([][4]string{{"resource", "test://a", "abc", ""}, {"resource", "test://a/b", "", "AA=="}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestForgottenWith400 checks that a new session is begun if the server reports a forgotten session with status 400 and
// without the request's id.
func TestForgottenWith400(t *testing.T) {
	var inits, calls atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", string('a'+inits.Add(1)))
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}`)
		case "tools/call":
			if calls.Add(1) == 1 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
				return
			}
			if calls.Load() == 3 { // with the id of the request, so the server did process it
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such session of training"},"id":`+string(m.ID)+`}`)
				return
			}
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[]}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(web.Close)
	c := connect(t, mcp.ClientConfig{Protocol: "2025-11-25", Dial: func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
	}})
	if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); tenon.ErrorCode(err) != tenon.CodeTool {
		t.Error(err)
	}
	if inits.Load() != 2 || calls.Load() != 3 {
		t.Errorf("%d sessions, %d calls; want 2 and 3", inits.Load(), calls.Load())
	}
}

// TestBegunAnew checks the session and revision in requests after a session was forgotten. The server may give the same
// session id again, or none.
func TestBegunAnew(t *testing.T) {
	for _, again := range []string{"first", ""} {
		t.Run("gives "+again, func(t *testing.T) { beginAnew(t, again) })
	}
}

func beginAnew(t *testing.T, again string) {
	var inits atomic.Int32
	var heads []string // of tools/call: session and revision
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			id := "first"
			if inits.Add(1) > 1 {
				id = again
			}
			if id != "" {
				w.Header().Set("Mcp-Session-Id", id)
			}
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}`)
		case "tools/call":
			heads = append(heads, r.Header.Get("Mcp-Session-Id")+" "+r.Header.Get("Mcp-Protocol-Version"))
			if len(heads) == 1 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[]}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(web.Close)
	c := connect(t, mcp.ClientConfig{Protocol: "2025-11-25", Dial: func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
	}})
	if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"first 2025-11-25", again + " 2025-11-25"}, heads); diff != "" {
		t.Error(diff)
	}
}

// TestNoticeStream checks that the first call waits for the stream on which the server may ask, and that the final loss
// of a stream is reported.
func TestNoticeStream(t *testing.T) {
	var opened, early atomic.Bool
	release := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if opened.Load() { // the second request for the stream is refused
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			time.Sleep(30 * time.Millisecond)
			opened.Store(true)
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "s")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}`)
		case "tools/call":
			early.Store(!opened.Load())
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[]}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(web.Close)
	health := make(chan error, 8)
	c := connect(t, mcp.ClientConfig{Protocol: "2025-11-25", Changed: func(string) {}, Health: func(err error) { health <- err },
		Dial: func(context.Context) (mcp.Stream, error) {
			return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
		}})
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	if _, err := c.Call(t.Context(), tenon.Call{Tool: "x", Ask: ask}); err != nil || early.Load() {
		t.Errorf("called before the stream was open (%v)", err)
	}
	if err := <-health; err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-health; err == nil || !strings.Contains(err.Error(), "405") {
		t.Errorf("told %v", err)
	}
}

// TestSettings checks how the settings and the log level reach a server in both eras.
func TestSettings(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Meta         map[string]json.RawMessage `json:"_meta"`
				Capabilities struct{ Experimental map[string]json.RawMessage }
				Level        string
			}
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		switch m.Method {
		case "initialize":
			seen["experimental"] = string(m.Params.Capabilities.Experimental["tenon/config"])
		case "logging/setLevel":
			seen["setLevel"] = m.Params.Level
		case "server/discover":
			seen["_meta"] = string(m.Params.Meta["tenon/config"]) + string(m.Params.Meta["io.modelcontextprotocol/logLevel"])
		}
		mu.Unlock()
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"supportedVersions":["2026-07-28"],"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}}`)
	}))
	t.Cleanup(web.Close)
	for _, protocol := range []string{mcp.Modern, "2025-11-25"} {
		connect(t, mcp.ClientConfig{Protocol: protocol, Settings: json.RawMessage(`{"a":9007199254740993}`), LogLevel: "error",
			Dial: func(context.Context) (mcp.Stream, error) {
				return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
			}})
	}
	want := map[string]string{"_meta": `{"a":9007199254740993}"error"`, "experimental": `{"a":9007199254740993}`, "setLevel": "error"}
	for range 12_000 { // a minute
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		if n == len(want) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// TestUnreadDefinitions lists prompts and resources with definitions that cannot be read: the others are listed, and one
// line of the log has the number, the first one and the reason. Unknown members are no reason.
func TestUnreadDefinitions(t *testing.T) {
	s := script(t, func(method string, _ *http.Request) (string, string) {
		switch method {
		case "server/discover":
			return discovered, ""
		case "prompts/list":
			return `{"prompts":[{"title":"no name"},{"name":"a"},{"name":7},{"name":"b","uri":"x:"}]}`, ""
		case "resources/list":
			return `{"resources":[{"uri":"x:1","uriTemplate":"x:{n}","name":"one"},{"name":"none"},5]}`, ""
		case "resources/templates/list":
			return `{"resourceTemplates":[{"uriTemplate":"x:{n}","uri":"x:2","name":"two"}]}`, ""
		}
		return "", ""
	})
	var log strings.Builder
	c := connect(t, mcp.ClientConfig{Protocol: mcp.Modern, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Dial: func(context.Context) (mcp.Stream, error) { return transport.DialHTTP(transport.HTTPConfig{URL: s.url}) }})
	prompts, err := c.Prompts(t.Context())
	if err != nil || len(prompts) != 2 || prompts[0].Name != "a" || prompts[1].Name != "b" {
		t.Errorf("prompts: %+v, %v", prompts, err)
	}
	resources, err := c.Resources(t.Context())
	if err != nil || len(resources) != 2 || resources[0].URI != "x:1" || resources[0].Template != "" ||
		resources[1].Template != "x:{n}" || resources[1].URI != "" {
		t.Errorf("resources: %+v, %v", resources, err)
	}
	if n := strings.Count(log.String(), "left out"); n != 2 ||
		!strings.Contains(log.String(), `prompts that cannot be read" number=2 first=`) ||
		!strings.Contains(log.String(), `resources that cannot be read" number=2 first=`) ||
		!strings.Contains(log.String(), `reason="it has no name"`) {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}
