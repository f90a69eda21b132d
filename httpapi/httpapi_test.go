package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door is a toolset with one tool, whose calls wait until open is closed.
type door struct{ open chan struct{} }

func (d *door) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "pass", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (d *door) Call(ctx context.Context, _ tenon.Call) (*tenon.Result, error) {
	select {
	case <-d.open:
		return &tenon.Result{Content: []tenon.Content{tenon.Text("passed")}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var _ tenon.Toolset = (*door)(nil)

const steps = "steps:\n  - text: I knock.\n    calls: [{name: pass, arguments: {}}]\n  - text: I am in.\n"

// serve opens a host and serves it on a Unix socket, as tenon serve does.
func serve(t *testing.T) (h *host.Host, d *door, socket string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	d = &door{open: make(chan struct{})}
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Version: "test", Toolsets: map[string]tenon.Toolset{"house": d}})
	if err != nil {
		t.Fatal(err)
	}
	serveHost(t, h)
	return h, d, h.Service().Info().Socket
}

// serveHost serves a host on its Unix socket, and closes it at the end of the test.
func serveHost(t *testing.T, h *host.Host) {
	t.Helper()
	l, err := httpapi.Listen(h.Service().Info().Socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: httpapi.Handler(h)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // says that it was closed
	}()
	t.Cleanup(func() {
		_ = s.Close() // streams end with it
		<-done
		_ = h.Close() // says what was under way
	})
}

// request sends a request and returns the status, the headers and the body of the response.
func request(t *testing.T, h http.Handler, method, path, kind, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://tenon"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := &recorder{header: http.Header{}}
	h.ServeHTTP(w, req)
	return w.status, w.header, w.body.String()
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestRequestsThatCannotBe(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	const js = "application/json"
	tests := map[string]struct {
		method, path, kind, body string
		status                   int
		code, detail             string
	}{
		"no such path":      {"GET", "/api/v2", "", "", 404, "not_found", "/api/v2"},
		"wrong method":      {"DELETE", "/api/v1/runs", "", "", 405, "invalid", "takes GET, HEAD, POST"},
		"no cursor":         {"GET", "/api/v1/runs?cursor=abc", "", "", 400, "invalid", "next_cursor of the page before"},
		"a text for a flag": {"POST", "/api/v1/runs", js, `{"question":"x","no_tools":"yes"}`, 400, "invalid", "no_tools must be true or false, not string"},
		"a list for a text": {"POST", "/api/v1/runs", js, `{"question":["x"]}`, 400, "invalid", "question must be a text, not array"},
		"a text in a list":  {"POST", "/api/v1/runs", js, `{"question":"x","files":"y"}`, 400, "invalid", "files must be a list, not string"},
		"an empty part":     {"GET", "/api/v1//runs", "", "", 404, "not_found", "there is nothing at /api/v1//runs"},
		"a part too many":   {"GET", "/api/v1/../v1/runs", "", "", 404, "not_found", "there is nothing at"},
		"a form":            {"POST", "/api/v1/runs", "application/x-www-form-urlencoded", "question=x", 415, "invalid", "application/json"},
		"plain text":        {"POST", "/api/v1/runs", "text/plain", `{"question":"x"}`, 415, "invalid", "application/json"},
		"no content type":   {"POST", "/api/v1/runs", "", `{"question":"x"}`, 415, "invalid", "application/json"},
		"no body":           {"POST", "/api/v1/runs", js, "", 400, "invalid", "missing"},
		"no JSON":           {"POST", "/api/v1/runs", js, "{", 400, "invalid", "unexpected end"},
		"two values":        {"POST", "/api/v1/runs", js, `{"question":"x"}{}`, 400, "invalid", "after top-level"},
		"unknown key":       {"POST", "/api/v1/runs", js, `{"question":"x","modle":"y"}`, 400, "invalid", "modle"},
		"wrong type":        {"POST", "/api/v1/runs", js, `{"question":1}`, 400, "invalid", "question"},
		"an array":          {"POST", "/api/v1/runs", js, `[]`, 400, "invalid", "object"},
		"not UTF-8":         {"POST", "/api/v1/runs", js, "{\"question\":\"\xff\"}", 400, "invalid", "UTF-8"},
		"very deep":         {"POST", "/api/v1/runs", js, strings.Repeat("[", 100_000), 400, "invalid", ""},
		"too large":         {"POST", "/api/v1/runs", js, `{"question":"` + strings.Repeat("x", 17<<20) + `"}`, 413, "too_large", "bytes"},
		"empty question":    {"POST", "/api/v1/runs", js, `{"question":" "}`, 400, "invalid", "question"},
		"negative turns":    {"POST", "/api/v1/runs", js, `{"question":"x","max_turns":-1}`, 400, "invalid", "max_turns"},
		"no turns":          {"POST", "/api/v1/runs", js, `{"question":"x","max_turns":0}`, 400, "invalid", "max_turns must be at least 1, not 0; without it"},
		"no such agent":     {"POST", "/api/v1/runs", js, `{"question":"x","agent":"nobody"}`, 404, "not_found", "nobody"},
		"no such session":   {"POST", "/api/v1/runs", js, `{"question":"x","session":"ses_none"}`, 404, "not_found", "ses_none"},
		"no such run":       {"GET", "/api/v1/runs/run_none", "", "", 404, "not_found", "run_none"},
		"no run counted":    {"POST", "/api/v1/runs/-1/resume", "", "", 404, "not_found", "-1"},
		"no run to cancel":  {"POST", "/api/v1/runs/run_none/cancel", "", "", 404, "not_found", "run_none"},
		"no run to steer":   {"POST", "/api/v1/runs/run_none/steer", js, `{"text":"x"}`, 404, "not_found", "run_none"},
		"no message":        {"POST", "/api/v1/runs/run_none/steer", js, `{"text":" "}`, 400, "invalid", "empty"},
		"no run's events":   {"GET", "/api/v1/runs/run_none/events", "", "", 404, "not_found", "run_none"},
		"no such state":     {"GET", "/api/v1/runs?state=done", "", "", 400, "invalid", "state must be one of working, input_required, completed, failed, cancelled, not 'done'"},
		"an empty state":    {"GET", "/api/v1/runs?state=", "", "", 400, "invalid", "state must be one of"},
		"an empty limit":    {"GET", "/api/v1/runs?limit=", "", "", 400, "invalid", "limit must be a number"},
		"a dry run or not":  {"DELETE", "/api/v1/config/servers/t?dry_run=yes", "", "", 400, "invalid", "dry_run must be one of true, false, not 'yes'"},
		"no flag":           {"GET", "/api/v1/models?probe=1", "", "", 400, "invalid", "probe must be one of true, false, not '1'"},
		"no number":         {"GET", "/api/v1/runs/run_none/events?after=x", "", "", 400, "invalid", "'x'"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, header, body := request(t, handler, tt.method, tt.path, tt.kind, tt.body)
			if status != tt.status || header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("status %d, %v\n%s", status, header, body)
			}
			var p httpapi.Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatal(err)
			}
			if string(p.Code) != tt.code || p.Status != tt.status || p.Title == "" || p.Type != "about:blank" || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestChatTypos sends misspelled members to /chat. They are refused unless the member itself is there, too. Other unknown
// members are of other vendors.
func TestChatTypos(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	for body, want := range map[string]string{
		`{"message":"x","sesionId":"y"}`:                    `unknown field \"sesionId\"; did you mean \"sessionId\"?`,
		`{"message":"x","parameters":{"max_tokens":1}}`:     `unknown field \"max_tokens\" in parameters; did you mean \"maxTokens\"?`,
		`{"mesage":"x"}`:                                    `did you mean \"message\"?`,
		`{"message":"","messages":[],"user":"u"}`:           "Message cannot be empty",
		`{"message":"","stream":true,"metadata":{"a":"b"}}`: "Message cannot be empty",
	} {
		if status, _, got := request(t, handler, "POST", "/chat", "application/json", body); status != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}

// TestWithdrawOverHTTP cancels a run that waits, and withdraws a message that no model call has sent.
func TestWithdrawOverHTTP(t *testing.T) {
	h, _, socket := serve(t)
	c := httpapi.NewClient(socket)
	t.Cleanup(func() { _ = c.Close() })
	started, err := c.Start(t.Context(), httpapi.StartRequest{Question: "open", Yes: "the test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Runs().Steer(t.Context(), started.Run.ID, "another way", ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds a run that has ended
		if err := c.Withdraw(t.Context(), started.Run.ID, "enough"); err != nil {
			t.Fatal(err)
		}
		for _, err := range h.Runs().Events(t.Context(), started.Run.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	said, err := h.Sessions().Transcripts().Messages(t.Context(), started.Run.Session)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range said {
		if m.Text() == "another way" {
			t.Error("the next question sends the message")
		}
	}
}

// TestChatCallBesideHanging calls a tool whose server is known, and does not wait for a server that hangs. A call that
// asks all servers first waits until their lists are given up, which is after the deadline of this request.
func TestChatCallBesideHanging(t *testing.T) {
	t.Run("RA-3_hanging_neighbour", func(t *testing.T) {
		over := make(chan struct{})
		hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
		defer hangs.Close()
		defer close(over)
		d := &door{open: make(chan struct{})}
		close(d.open)
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"house": d},
			Config: &config.Config{Servers: map[string]servers.Config{"hangs": {URL: hangs.URL, Timeout: time.Minute}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", "http://tenon/mcp/tools/call",
			strings.NewReader(`{"toolName":"pass"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		w := &recorder{header: http.Header{}}
		httpapi.Handler(h).ServeHTTP(w, req)
		if w.status != 200 || !strings.Contains(w.body.String(), `"success":true`) {
			t.Errorf("%d %s", w.status, w.body.String())
		}
	})
}

// TestStatuses checks that each error code of the root package has an HTTP status.
func TestStatuses(t *testing.T) {
	src, err := os.ReadFile("../error.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"`).FindAllStringSubmatch(string(src), -1)
	if len(codes) < 10 {
		t.Fatalf("the codes cannot be read: %v", codes)
	}
	for _, c := range codes {
		if !httpapi.HasStatus(tenon.Code(c[1])) {
			t.Errorf("code %s has no status", c[1])
		}
	}
}

// TestRunOverTheSocket starts a run with a client, follows it, sends it a message and sees its end.
func TestRunOverTheSocket(t *testing.T) {
	h, d, socket := serve(t)
	if info, err := os.Stat(socket); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket's mode is %v: %v", info.Mode(), err)
	}
	c := httpapi.NewClient(socket)
	defer c.Close()
	if health, err := c.Health(t.Context()); err != nil || health.Status != "ok" || health.Version != "test" {
		t.Fatalf("%+v: %v", health, err)
	}
	got, err := c.Start(t.Context(), httpapi.StartRequest{Question: "open <the> door", Yes: "the test"}, "key")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Start(t.Context(), httpapi.StartRequest{Question: "open <the> door", Yes: "the test"}, "key"); err != nil || again.Run.ID != got.Run.ID {
		t.Errorf("the same key led to %s and %s: %v", got.Run.ID, again.Run.ID, err)
	}
	for _, q := range []httpapi.StartRequest{{Question: "another", Yes: "the test"}, {Question: "open <the> door", NoTools: true, Yes: "the test"}, {Question: "open <the> door"}} {
		if _, err := c.Start(t.Context(), q, "key"); tenon.ErrorCode(err) != tenon.CodeConflict {
			t.Errorf("another question under the same key: %v", err)
		}
	}
	handler := httpapi.Handler(h)
	var seqs []uint64
	kinds := map[string]int{}
	for e, err := range c.Runs().Events(t.Context(), got.Run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
		if e.Seq > 0 {
			seqs = append(seqs, e.Seq)
		}
		if e.Kind == tenon.EventStarted && e.Step == "1.0" {
			status, _, body := request(t, handler, "POST", "/api/v1/runs/"+got.Run.ID+"/steer", "application/json", `{"text":"quietly"}`)
			if status != 200 {
				t.Errorf("steer: %d %s", status, body)
			}
			close(d.open)
		}
	}
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			t.Fatalf("the events are %v", seqs)
		}
	}
	if kinds[tenon.EventDone] != 1 || kinds["message"] != 1 || kinds[engine.LiveDelta] == 0 {
		t.Errorf("the stream had %v", kinds)
	}
	status, _, body := request(t, handler, "GET", "/api/v1/runs/"+got.Run.ID, "", "")
	if status != 200 || !strings.Contains(body, `"answer":"I am in."`) {
		t.Errorf("%d %s", status, body)
	}
	for _, verb := range []string{"resume", "cancel"} {
		if status, _, body := request(t, handler, "POST", "/api/v1/runs/"+got.Run.ID+"/"+verb, "", ""); status != 409 {
			t.Errorf("%s of a run that has ended: %d %s", verb, status, body)
		}
	}
	last := len(seqs)
	if status, _, _ := request(t, handler, "GET", "/api/v1/runs/"+got.Run.ID+"/events", "", "", "Last-Event-ID", strconv.Itoa(last)); status != 204 {
		t.Errorf("a stream that has no more is answered with %d", status)
	}
}

func TestCancelOverHTTP(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	status, header, body := request(t, handler, "POST", "/api/v1/runs", "application/json; charset=utf-8", `{"question":"open","yes":"the test"}`)
	var got httpapi.StartResponse
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 202 || header.Get("Location") != "/api/v1/runs/"+got.Run.ID {
		t.Fatalf("%d %v %s", status, header, body)
	}
	if status, _, body = request(t, handler, "POST", "/api/v1/runs/"+got.Run.ID+"/cancel", "application/json", `{"reason":"enough"}`); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	for _, err := range h.Runs().Events(t.Context(), got.Run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, body = request(t, handler, "GET", "/api/v1/runs/"+got.Run.ID, "", ""); !strings.Contains(body, `"state":"cancelled"`) {
		t.Error(body)
	}
}

// TestSocket checks that a socket on which nobody listens any longer is replaced. A path that is too long for a socket
// address works if the operating system has a way around the limit.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	for range 12 {
		dir = filepath.Join(dir, "a-folder-deep-down")
	}
	if runtime.GOOS != "linux" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "serve.sock")
	c := httpapi.NewClient(path)
	defer c.Close()
	if _, err := c.Health(t.Context()); tenon.ErrorCode(err) != tenon.CodeUnreachable || !strings.Contains(err.Error(), "tenon serve") {
		t.Errorf("nobody serves: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // left behind by a process that has died
		t.Fatal(err)
	}
	if _, err := c.Health(t.Context()); tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Errorf("nobody serves: %v", err)
	}
	l, err := httpapi.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = http.ReadRequest(bufio.NewReader(conn))
		}
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"status\":\"ok\"}")
			err = errors.Join(err, conn.Close())
		}
		done <- err
	}()
	if health, err := c.Health(t.Context()); err != nil || health.Status != "ok" {
		t.Errorf("%+v: %v", health, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
