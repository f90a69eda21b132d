package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+ownToken)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestGracefulStop (C10) stops a loaded server repeatedly. Every run whose id a client has received is stored, and ends
// under the next server. Streams end with the event "stopping", which asks the client to reconnect. The stop takes at
// most its limit. TENON_STOPS sets the number of stops; make check uses a hundred.
func TestGracefulStop(t *testing.T) {
	const clients = 8
	const bound = time.Minute // much longer than a stop takes, and than clients wait
	stops := stopsOf(t)
	dir := t.TempDir()
	d := &door{open: make(chan struct{})}
	close(d.open)
	file := writeSteps(t, dir)
	var got begunRuns
	got.told = map[string]bool{}
	for n := range stops {
		h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"house": d}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		base, leave := context.WithCancelCause(context.Background())
		s := &http.Server{Handler: httpapi.New(h, guarded()), BaseContext: func(net.Listener) context.Context { return base }}
		served := make(chan struct{})
		go func() { defer close(served); _ = s.Serve(l) }()
		url := "http://" + l.Addr().String()
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() { got.begin(url, 3*bound) })
		}
		time.Sleep(time.Duration(5+n%20*3) * time.Millisecond)
		for end := time.Now().Add(time.Minute); got.count() <= n && time.Now().Before(end); { // a busy machine takes longer
			time.Sleep(time.Millisecond)
		}
		stopped := time.Now()
		leave(httpapi.ErrStopping)
		end, cancel := context.WithTimeout(context.Background(), bound)
		if err := s.Shutdown(end); err != nil {
			t.Errorf("stop %d: %v", n, err)
		}
		h.Service().Drain(end)
		cancel()
		<-served
		if err := h.Close(); err != nil {
			t.Errorf("stop %d: %v", n, err)
		}
		if took := time.Since(stopped); took > bound {
			t.Errorf("stop %d took %s", n, took)
		}
		wg.Wait()
	}
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"house": d}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got.markers == 0 {
		t.Error("no stream ended with the marker that says to come again")
	}
	if len(got.told) < stops {
		t.Fatalf("only %d runs", len(got.told))
	}
	allCompleted(t, got.told, h)
	t.Logf("%d runs over %d stops, %d streams ended with the marker", len(got.told), stops, got.markers)
}

// begunRuns are the runs that the clients of a server have started.
type begunRuns struct {
	mu      sync.Mutex
	told    map[string]bool // ids
	markers int             // streams that ended with the event that asks the client to reconnect
}

func (b *begunRuns) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.told)
}

// begin starts runs until the server is stopped.
func (b *begunRuns) begin(url string, timeout time.Duration) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: timeout}
	for k := 0; ; k++ {
		run, marker, err := begin(c, url, k%2 == 0)
		b.mu.Lock()
		if run != "" {
			b.told[run] = true
		}
		if marker {
			b.markers++
		}
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// stopsOf returns how many times the server is stopped.
func stopsOf(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TENON_STOPS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TENON_STOPS=%s is not a number of stops", text)
	}
	return n
}

// allCompleted checks that each run is stored and completes.
func allCompleted(t *testing.T, told map[string]bool, h *host.Host) {
	t.Helper()
	for id := range told {
		run, err := h.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatalf("a run that was told of is lost: %v", err)
		}
		if !run.State.Ended() {
			if err := h.Runs().Resume(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			for _, err := range h.Runs().Events(t.Context(), id, run.Seq) {
				if err != nil {
					t.Fatal(err)
				}
			}
			run, err = h.Runs().Get(t.Context(), id)
		}
		if err != nil || run.State != tenon.RunCompleted {
			t.Errorf("run %s is %s: %v", id, run.State, err)
		}
	}
}

// begin starts a run and, if wanted, follows it.
func begin(c *http.Client, url string, follow bool) (run string, marker bool, err error) {
	ask := func(method, path, body string) (*http.Response, error) {
		req, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		req.Header.Set("Authorization", "Bearer "+ownToken)
		return c.Do(req)
	}
	res, err := ask("POST", "/api/v1/runs", `{"question":"open","yes":"me"}`)
	if err != nil {
		return "", false, err
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != http.StatusAccepted {
		return "", false, fmt.Errorf("status %d: %w", res.StatusCode, io.ErrUnexpectedEOF)
	}
	_, rest, _ := strings.Cut(string(b), `"run":{"id":"`)
	run, _, _ = strings.Cut(rest, `"`)
	if !follow {
		return run, false, nil
	}
	if res, err = ask("GET", "/api/v1/runs/"+run+"/events", ""); err != nil {
		return run, false, err
	}
	defer res.Body.Close()
	b, err = io.ReadAll(res.Body)
	return run, strings.Contains(string(b), "event: stopping\n"), err
}

// TestOverload checks that a user with too many requests gets an error with Retry-After, and that another user can
// still send requests.
func TestOverload(t *testing.T) {
	h, _, _ := serve(t)
	g := httpapi.NewGate(100)
	n := 0
	for g.Enter("local") {
		n++
	}
	if n < 70 || n > 90 {
		t.Errorf("one alone gets %d of 100", n)
	}
	m := 0
	for g.Enter("anna") {
		m++
	}
	if m < 10 {
		t.Errorf("another gets %d beside %d", m, n)
	}
	for range n {
		g.Leave("local")
	}
	for range m {
		g.Leave("anna")
	}
	a, b := 0, 0
	for {
		x, y := g.Enter("local"), g.Enter("anna")
		if x {
			a++
		}
		if y {
			b++
		}
		if !x && !y {
			break
		}
	}
	if a-b > 1 || b-a > 1 || a < 40 {
		t.Errorf("two who ask the same get %d and %d of 100", a, b)
	}
	handler := httpapi.Full(h, guarded())
	status, header, body := request(t, handler, "GET", "/api/v1/runs", "", "", "Authorization", "Bearer "+ownToken)
	if status != 429 || header.Get("Retry-After") == "" || !strings.Contains(body, "try again") {
		t.Errorf("%d %v %s", status, header, body)
	}
	if status, _, body := request(t, handler, "GET", "/api/v1/runs", "", "", "Authorization", "Bearer "+annaToken); status != 200 {
		t.Errorf("another is kept out: %d %s", status, body)
	}
}

// writeSteps writes a script for a model that calls the tool of the door.
func writeSteps(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
