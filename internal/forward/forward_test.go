package forward

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// directory is a store with the addresses of processes.
type directory struct {
	mu        sync.Mutex
	addresses map[string]string
	bare      map[string]bool // alive without an address
	fails     error
	looks     int
}

func (d *directory) set(id, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses[id] = address
}

// peers is the view that one process has of the store.
type peers struct {
	*directory
	self, secret string
}

func (p peers) Self() string { return p.self }

func (p peers) Peer(_ context.Context, id string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	return p.addresses[id], p.addresses[id] != "" || p.bare[id], p.fails
}

func (p peers) PeerKey(purpose string) []byte {
	if p.secret == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(p.secret + purpose))
	return sum[:]
}

// process is a tenon serve: its checks are a token that is the name of the principal.
type process struct {
	*Forwarder
	*httptest.Server
	serve http.HandlerFunc // answers as the process that has the session

	mu  sync.Mutex
	raw []*http.Request // as they arrived
}

func newProcess(t *testing.T, d *directory, self string) *process {
	t.Helper()
	return startProcess(t, peers{d, self, "the key of the store"})
}

func startProcess(t *testing.T, view peers) *process {
	t.Helper()
	f, err := New(Config{Peers: view, Poll: 20 * time.Millisecond, Lease: 60 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Forwarder: f, serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, view.self) }}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", p.handle)
	mux.HandleFunc("/mcp/{endpoint}", p.handle)
	mux.HandleFunc("/", p.handle)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.raw = append(p.raw, r.Clone(context.WithoutCancel(r.Context())))
		p.mu.Unlock()
		opened, err := p.Unwrap(w, r)
		if err != nil {
			fail(w, err)
			return
		}
		mux.ServeHTTP(w, opened)
	}))
	t.Cleanup(func() {
		p.Forwarder.Close()
		p.Server.Close()
	})
	view.set(view.self, p.URL)
	return p
}

func fail(w http.ResponseWriter, err error) {
	status := map[tenon.Code]int{tenon.CodeNotFound: 404, tenon.CodeDenied: 403, tenon.CodeUnreachable: 502,
		tenon.CodeTooLarge: 413}[tenon.ErrorCode(err)]
	http.Error(w, err.Error(), max(status, 400))
}

func (p *process) handle(w http.ResponseWriter, r *http.Request) {
	who := tenon.Principal(r.Header.Get("Authorization"))
	if who == "" {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if done, err := p.Forward(w, r, body, who); done || err != nil {
		if err != nil {
			fail(w, err)
		}
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	p.serve(w, r)
}

// ask sends a request of a client and returns the answer.
func (p *process) ask(t *testing.T, method, path, session, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", token)
	r.Header.Set("Mcp-Session-Id", session)
	res, err := p.Client().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	if res.Header.Get(Header) != "" {
		t.Errorf("the client sees the header %s", Header)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err.Error()
	}
	return res.StatusCode, string(b)
}

// TestForward sends requests of a session to another process. The owner gets them as the client sent them, and they
// cross the network without their headers.
func TestForward(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	var got *http.Request
	var text string
	a.serve = func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ := io.ReadAll(r.Body)
		text = string(body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "answer of aa")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/mcp/lab?q=1", strings.NewReader(`{"id":1}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Authorization": "ann", "Mcp-Session-Id": a.SessionID("ann", "lab"), "Last-Event-Id": "7",
		"Accept": "text/event-stream", "Tenon-Server-Credentials": "secret", "Content-Type": "application/json"}
	for name, value := range want {
		r.Header.Set(name, value)
	}
	r.Header.Set("Connection", "X-Own")
	r.Header.Set("X-Own", "1")
	r.Host = "tools.example.com"
	res, err := b.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted || string(answer) != "answer of aa" || res.Header.Get("X-Hop") != "" ||
		res.Header.Get(Header) != "" {
		t.Errorf("status %d, headers %v: %s", res.StatusCode, res.Header, answer)
	}
	if got == nil {
		t.Fatal("the owner got nothing")
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q at the owner, want %q", name, got.Header.Get(name), value)
		}
	}
	if got.Host != "tools.example.com" || got.URL.RequestURI() != "/mcp/lab?q=1" || text != `{"id":1}` ||
		got.Header.Get("X-Own") != "" {
		t.Errorf("the owner got %s %s with headers %v: %s", got.Host, got.URL, got.Header, text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range []string{"Authorization", "Tenon-Server-Credentials", "Mcp-Session-Id"} {
		if len(a.raw) != 1 || a.raw[0].Header.Get(name) != "" {
			t.Errorf("%s crosses the network: %v", name, a.raw)
		}
	}
}

// TestForward_Ids sends ids of sessions that the process must not forward.
func TestForward_Ids(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	stranger := startProcess(t, peers{d, "cc", "another key"})
	good := a.SessionID("ann", "")
	parts := strings.Split(good, ".")
	for name, session := range map[string]string{
		"none":                    "",
		"its own":                 b.SessionID("ann", ""),
		"of another principal":    a.SessionID("bob", ""),
		"of another endpoint":     a.SessionID("ann", "lab"),
		"of another store":        stranger.SessionID("ann", ""),
		"with another owner":      parts[0] + ".cc." + parts[2],
		"with another name":       "mcp_x." + parts[1] + "." + parts[2],
		"without a MAC":           parts[0] + "." + parts[1] + ".",
		"with a MAC that is made": parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"with an address":         "x.http://127.0.0.1:1.y",
	} {
		if status, text := b.ask(t, http.MethodPost, "/mcp", session, "ann", "{}"); status != 200 || text != "bb" {
			t.Errorf("an id %s: %d %s", name, status, text)
		}
	}
	if status, text := b.ask(t, http.MethodPost, "/mcp", good, "ann", `{"method":"initialize"}`); status != 200 || text != "bb" {
		t.Errorf("a new session with the id of an old one: %d %s", status, text)
	}
	if status, text := b.ask(t, http.MethodPost, "/api/v1/runs", good, "ann", "{}"); status != 200 || text != "bb" {
		t.Errorf("another path is forwarded: %d %s", status, text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.raw) > 0 {
		t.Errorf("the owner got %d requests", len(a.raw))
	}
	if f, err := New(Config{Peers: peers{d, "dd", ""}}); f != nil || err != nil {
		t.Errorf("a store without a key: %v, %v", f, err)
	}
}

// forwardedRequest returns a request to /mcp with a sealed header.
func forwardedRequest(sealed string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}"))
	r.Header.Set(Header, sealed)
	return r
}

// TestUnwrap sends requests that claim to be forwarded.
func TestUnwrap(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	stranger := startProcess(t, peers{d, "cc", "another key"})
	sum := sha256.Sum256([]byte("{}"))
	good := request{To: "aa", Who: "ann", Method: "POST", URI: "/mcp", Host: "x", Body: sum[:],
		Header: http.Header{"Authorization": {"ann"}, "Mcp-Session-Id": {b.SessionID("ann", "")}}}
	for name, tc := range map[string]struct {
		by     *process
		change func(*request)
		path   string
		double bool
		again  bool // the same bytes a second time
		want   int
	}{
		"as it should be":       {by: b, want: 200}, // it names a session of bb, and is not forwarded back
		"of another store":      {by: stranger, want: 403},
		"for another process":   {by: b, change: func(r *request) { r.To = "bb" }, want: 403},
		"at another path":       {by: b, path: "/mcp/lab", want: 403},
		"at a path outside MCP": {by: b, path: "/api/v1/runs", change: func(r *request) { r.URI = "/api/v1/runs" }, want: 403},
		"with another method":   {by: b, change: func(r *request) { r.Method = "DELETE" }, want: 403},
		"with another body":     {by: b, change: func(r *request) { r.Body = make([]byte, 32) }, want: 403},
		"of another principal":  {by: b, change: func(r *request) { r.Who = "bob" }, want: 403},
		"without a token":       {by: b, change: func(r *request) { r.Header = nil }, want: 401},
		"20 s old":              {by: b, change: func(r *request) { r.At = r.At.Add(-20 * time.Second) }, want: 200},
		"too old":               {by: b, change: func(r *request) { r.At = r.At.Add(-31 * time.Second) }, want: 403},
		"of the future":         {by: b, change: func(r *request) { r.At = r.At.Add(time.Hour) }, want: 403},
		"without a time":        {by: b, change: func(r *request) { r.At = time.Time{} }, want: 403},
		"again":                 {by: b, again: true, want: 403},
		"twice":                 {by: b, double: true, want: 403},
	} {
		r := good
		r.At = time.Now()
		if tc.change != nil {
			tc.change(&r)
		}
		sealed, _, err := tc.by.keys.seal(&r)
		if err != nil {
			t.Fatal(err)
		}
		tc.path = cmp.Or(tc.path, "/mcp")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+tc.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if tc.again {
			if _, err := a.Unwrap(httptest.NewRecorder(), forwardedRequest(sealed)); err != nil {
				t.Errorf("the first time: %v", err)
			}
		}
		req.Header.Set("Authorization", "ann")
		req.Header.Add(Header, sealed)
		if tc.double {
			req.Header.Add(Header, sealed)
		}
		res, err := a.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != tc.want {
			t.Errorf("a request %s: %d %s", name, res.StatusCode, text)
		}
	}
	for _, text := range []string{"", "x", strings.Repeat("A", 100)} {
		if _, _, ok := a.keys.open(text); ok {
			t.Errorf("%q is opened", text)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.raw) > 0 {
		t.Error("a forwarded request was forwarded again")
	}
}
