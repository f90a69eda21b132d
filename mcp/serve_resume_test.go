package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/mcp"
)

// sseClient is a client of the legacy era that reads streams of notifications by hand.
type sseClient struct{ url, session string }

func (c *sseClient) send(t *testing.T, ctx context.Context, method, body, last string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// stream opens a stream. The events arrive as "ID DATA".
func (c *sseClient) stream(t *testing.T, last string) (events <-chan string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	res := c.send(t, ctx, http.MethodGet, "", last)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET: %s", res.Status)
	}
	out, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(out)
		id := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if v, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = v
			}
			if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- id + " " + v
			}
		}
	}()
	end = func() {
		cancel()
		_ = res.Body.Close()
		<-ended
	}
	t.Cleanup(end)
	return out, end
}

// TestResumedStream checks that a client that opens its stream of notifications again with the id of the last event
// gets what it missed, once and in order, also if the earlier connection was half open, and nothing of other streams.
func TestResumedStream(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Tools: []mcp.ServerTool{{Definition: []byte(`{"name":"a"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	c := &sseClient{url: web.URL}
	res := c.send(t, t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, "")
	_ = res.Body.Close()
	c.session = res.Header.Get("Mcp-Session-Id")
	next := func(events <-chan string, want string) (id string) {
		t.Helper()
		select {
		case got := <-events:
			id, data, _ := strings.Cut(got, " ")
			if id == "" || (want == "") != (data == "") || !strings.Contains(data, want) {
				t.Fatalf("event %q, want %q", got, want)
			}
			return id
		case <-time.After(20 * time.Second):
			t.Fatalf("no event, want %q", want)
			return ""
		}
	}
	first, end := c.stream(t, "")
	begin := next(first, "")
	s.ListChanged("tools")
	one := next(first, "tools/list_changed")
	if one == begin {
		t.Error("two events with the same id")
	}
	s.ListChanged("prompts")
	next(first, "prompts")
	s.ListChanged("resources")
	next(first, "resources")
	again, _ := c.stream(t, one) // although the first one is still open
	two := next(again, "prompts")
	next(again, "resources")
	if _, open := <-first; open {
		t.Error("the earlier connection goes on")
	}
	end()
	other, endOther := c.stream(t, "")
	next(other, "")
	resumed, _ := c.stream(t, two)
	next(resumed, "resources")
	if _, open := <-again; open {
		t.Error("the second connection goes on")
	}
	endOther()
	for came := false; !came; { // the server may send to the closed stream until it has noticed
		s.ListChanged("tools")
		select {
		case got := <-resumed:
			came = strings.Contains(got, "tools/list_changed")
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, last := range []string{"x", "99-1", "1-99999", "-1-2", fmt.Sprint(1<<60) + "-1"} {
		fresh, endFresh := c.stream(t, last)
		next(fresh, "") // a new stream
		endFresh()
	}
}
