package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestRejoin checks that a follower resumes a broken stream after the last event that it received, also if the server
// was stopped. A stream without any event is an error.
func TestRejoin(t *testing.T) {
	var asked []string
	serve := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("after"))
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(seq int, kind string) {
			fmt.Fprintf(w, "id: %d\ndata: {\"run\":\"run_a\",\"seq\":%d,\"kind\":%q}\n\n", seq, seq, kind)
		}
		switch len(asked) {
		case 1:
			say(1, "run")
			fmt.Fprint(w, "event: stopping\ndata: {}\n\n")
		case 2:
			say(2, "started")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 3:
			http.Error(w, `{"code":"unreachable","detail":"the other end is not there"}`, http.StatusBadGateway)
		default:
			say(3, "done")
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(serve))
	defer srv.Close()
	c, err := httpapi.NewRemote(srv.URL, tenon.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Rejoin(func(string, ...any) {}, 1)
	var kinds []string
	for e, err := range c.Runs().Events(t.Context(), "run_a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]string{"run", "reset", "started", "reset", "done"}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "2"}, asked); diff != "" {
		t.Errorf("joined after (-want +got):\n%s", diff)
	}
	srv.Close()
	for _, err := range c.Runs().Events(t.Context(), "run_a", 0) {
		if tenon.ErrorCode(err) != tenon.CodeUnreachable {
			t.Errorf("nobody there: %v", err)
		}
	}
}

// TestRejoinCall checks that a tool call is followed across a broken stream, like a run.
func TestRejoinCall(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if asked++; asked == 1 {
			fmt.Fprint(w, "id: 1\ndata: {\"run\":\"run_a\",\"seq\":1,\"kind\":\"run\"}\n\nevent: stopping\ndata: {}\n\n")
			return
		}
		fmt.Fprint(w, "id: 2\ndata: {\"run\":\"run_a\",\"seq\":2,\"kind\":\"result\",\"data\":{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"42\"}]}}}\n\n"+
			"id: 3\ndata: {\"run\":\"run_a\",\"seq\":3,\"kind\":\"done\",\"data\":{\"state\":\"completed\"}}\n\n")
	}))
	defer srv.Close()
	c, err := httpapi.NewRemote(srv.URL, tenon.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Rejoin(func(string, ...any) {}, 1)
	r, err := host.FollowCall(t.Context(), c.Runs(), "run_a", 0, func(tenon.Event) {})
	if err != nil || r.Text() != "42" {
		t.Errorf("%v, %v", r, err)
	}
}

// TestRemoteAddress checks that an invalid address is refused, and that the error does not show the parts that may be
// secret.
func TestRemoteAddress(t *testing.T) {
	for _, bad := range []string{"", "host", "host:80", "ftp://host", "http://", "http://user:pass@host", "http://host?token=pass", "http://host#pass", "http://[::1", "http://ho st"} {
		c, err := httpapi.NewRemote(bad, tenon.Secret{})
		if c != nil || tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := httpapi.NewRemote("https://tenon.example.com/under/", tenon.Secret{}); err != nil {
		t.Error(err)
	}
}
