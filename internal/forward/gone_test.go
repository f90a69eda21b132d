package forward

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestForward_Gone sends requests of sessions whose owners do not answer.
func TestForward_Gone(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	session := a.SessionID("ann", "")
	expect := func(what string, want int, method string) {
		t.Helper()
		body := ""
		if method == http.MethodPost {
			body = "{}"
		}
		if status, text := b.ask(t, method, "/mcp", session, "ann", body); status != want {
			t.Errorf("%s: %s is answered with %d %s, want %d", what, method, status, text, want)
		}
	}
	d.set("aa", "")
	expect("an owner without an address", 404, http.MethodPost)
	d.set("aa", "file:///etc")
	expect("an owner with a wrong address", 404, http.MethodPost)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.set("aa", "http://"+l.Addr().String())
	go func() { // an owner that is stopped: it takes connections, and is soon not alive any more
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.set("aa", "")
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	expect("a stopped owner", 404, http.MethodGet)
	d.set("aa", "http://"+l.Addr().String())
	expect("an owner that may have begun", 502, http.MethodPost)
	d.set("aa", "http://"+l.Addr().String())
	_ = l.Close()
	expect("an owner that was killed", 404, http.MethodPost)

	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		w.Header().Set(Header, "made up")
	}))
	defer other.Close()
	d.set("aa", other.URL)
	expect("another program at its address", 404, http.MethodPost)
	for name, values := range seen {
		if name != Header && (strings.Contains(strings.Join(values, " "), "ann") || strings.Contains(strings.Join(values, " "), session)) {
			t.Errorf("the other program sees %s: %v", name, values)
		}
	}
	for _, tc := range []struct {
		method     string
		from, want int
	}{{http.MethodPost, 502, 502}, {http.MethodPost, 504, 502}, {http.MethodPost, 403, 404}, {http.MethodGet, 502, 404}} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.from) }))
		d.set("aa", proxy.URL)
		expect("a proxy that answers itself", tc.want, tc.method)
		proxy.Close()
	}
	d.set("aa", b.URL)
	expect("the address of the forwarding process", 404, http.MethodPost)
	third := newProcess(t, d, "cc")
	d.set("aa", third.URL)
	expect("the address of a third process", 404, http.MethodPost)

	d.set("aa", a.URL)
	expect("an owner that is back", 200, http.MethodPost)
}

// TestForward_LargeHeaders checks that headers that do not fit into a forwarded request are refused.
func TestForward_LargeHeaders(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	d.set("aa", a.URL)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "ann")
	r.Header.Set("Mcp-Session-Id", a.SessionID("ann", ""))
	r.Header.Set("X-Large", strings.Repeat("x", maxSealed))
	res, err := b.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("large headers: %d", res.StatusCode)
	}
}

// stream opens the event stream of a session, and returns its lines.
func (p *process) stream(t *testing.T, ctx context.Context, session string) (lines *bufio.Reader, end func()) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "ann")
	r.Header.Set("Mcp-Session-Id", session)
	res, err := p.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the stream has status %d", res.StatusCode)
	}
	return bufio.NewReader(res.Body), func() { _ = res.Body.Close() }
}

// TestForward_Stream follows an event stream through another process: events arrive while the owner goes on, and each
// end is seen at the other side.
func TestForward_Stream(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	session := a.SessionID("ann", "")
	next, left := make(chan string), make(chan struct{}, 1)
	a.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event, ok := <-next:
				switch {
				case !ok:
					return // as at a drain
				case event == "break":
					_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
					return
				}
				_, _ = io.WriteString(w, "data: "+event+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				left <- struct{}{}
				return
			}
		}
	}
	event := func(lines *bufio.Reader, text string) {
		t.Helper()
		next <- text
		if line, err := lines.ReadString('\n'); err != nil || line != "data: "+text+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	lines, end := b.stream(t, ctx, session)
	event(lines, "one")
	event(lines, "two")
	stop() // the client leaves
	<-left
	end()

	lines, end = b.stream(t, t.Context(), session)
	event(lines, "three")
	next <- "break"
	if _, err := lines.ReadString('\n'); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an owner that breaks off: %v", err)
	}
	end()

	lines, end = b.stream(t, t.Context(), session)
	event(lines, "four")
	d.set("aa", "") // stopped for longer than its lease
	if _, err := lines.ReadString('\n'); err == nil || err == io.EOF {
		t.Errorf("an owner that is gone: %v", err)
	}
	<-left
	end()
	d.set("aa", a.URL)

	lines, end = b.stream(t, t.Context(), session)
	event(lines, "five")
	close(next)
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("an owner that drains: %v", err)
	}
	end()
}

// TestForward_Closing begins to stop the process that forwards. Streams end at once; a request under way gets its
// answer, until the process is closed.
func TestForward_Closing(t *testing.T) {
	d := &directory{addresses: map[string]string{}}
	a, b := newProcess(t, d, "aa"), newProcess(t, d, "bb")
	session := a.SessionID("ann", "")
	begun, answer, left := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)
	a.serve = func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-answer:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
			left <- struct{}{}
		}
	}
	closing, begin := context.WithCancelCause(t.Context())
	send := func(method string) (*httptest.ResponseRecorder, chan error) {
		r := httptest.NewRequestWithContext(closing, method, "/mcp", nil)
		r.Header.Set("Authorization", "ann")
		r.Header.Set("Mcp-Session-Id", session)
		w, ended := httptest.NewRecorder(), make(chan error, 1)
		go func() {
			_, err := b.Forward(w, r, nil, "ann")
			ended <- err
		}()
		<-begun
		return w, ended
	}
	_, stream := send(http.MethodGet)
	w, call := send(http.MethodPost)
	begin(tenon.ErrClosing)
	if err := <-stream; tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Errorf("the stream: %v", err)
	}
	<-left
	drained := make(chan struct{})
	go func() {
		b.Drain(t.Context())
		close(drained)
	}()
	answer <- struct{}{}
	if err := <-call; err != nil || w.Body.String() != "done" {
		t.Errorf("the call: %v, %s", err, w.Body)
	}
	<-drained
	closing = t.Context()
	late := func(by *process, what string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
		r.Header.Set("Mcp-Session-Id", session)
		done, err := by.Forward(httptest.NewRecorder(), r, nil, "ann")
		if !done || tenon.ErrorCode(err) != tenon.CodeCancelled {
			t.Errorf("a call after %s: %v", what, err)
		}
	}
	late(b, "Drain")
	b = newProcess(t, d, "cc")
	_, call = send(http.MethodPost)
	b.Forwarder.Close()
	if err := <-call; tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Errorf("a call at the end: %v", err)
	}
	<-left
	late(b, "Close")
}

// TestWatch looks at an owner whose row expires for a moment, cannot be read, and has no address. Its requests go on
// until two looks in a row, a third of a lease apart, have not found it.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{addresses: map[string]string{"aa": "http://10.0.0.1:1"}, bare: map[string]bool{}}
		f, err := New(Config{Peers: peers{d, "bb", "key"}, Poll: 2 * time.Second, Lease: 12 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ctx, stop, err := f.until(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp", nil), "aa")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		time.Sleep(time.Second) // looks are at even seconds
		for _, step := range []struct {
			name    string
			address string
			bare    bool
			fails   error
			looks   int
			gone    bool
		}{
			{name: "alive", address: "x", looks: 3},
			{name: "expired for a moment", looks: 2},
			{name: "back", address: "x", looks: 1},
			{name: "without an address", bare: true, looks: 5},
			{name: "expired again", looks: 2},
			{name: "a failed look", fails: io.ErrUnexpectedEOF, looks: 1},
			{name: "after it", looks: 2},
			{name: "gone", looks: 1, gone: true},
		} {
			d.mu.Lock()
			d.addresses["aa"], d.bare["aa"], d.fails = step.address, step.bare, step.fails
			d.mu.Unlock()
			time.Sleep(time.Duration(step.looks) * 2 * time.Second)
			synctest.Wait()
			if gone := errors.Is(context.Cause(ctx), errGone); gone != step.gone {
				t.Errorf("%s: gone is %v", step.name, gone)
			}
		}
		d.addresses["aa"], d.looks = "", 0
		if address, err := f.find(t.Context(), "aa"); err != nil || address != "" || d.looks != 2 {
			t.Errorf("an owner that is gone: %q, %v, %d looks", address, err, d.looks)
		}
	})
}
