package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// waiting waits until n approvals wait, and returns them.
func (w *world) waiting(t *testing.T, n int) (list []host.Approval) {
	t.Helper()
	until(t, "the approvals", func() bool {
		var err error
		if list, err = w.host.Approvals().List(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		return len(list) >= n
	})
	if len(list) != n {
		t.Fatalf("%d approvals wait, want %d: %+v", len(list), n, list)
	}
	return list
}

// decide decides about the call that a run waits for.
func (w *world) decide(t *testing.T, run string, v tenon.Verdict) {
	t.Helper()
	if _, _, err := w.host.Approvals().Decide(t.Context(), run, "1.0", agent.Ruling{Verdict: v, By: "the test"}); err != nil {
		t.Fatal(err)
	}
}

// runs returns all runs.
func (w *world) runs(t *testing.T) []tenon.Run {
	t.Helper()
	list, err := w.host.Runs().List(t.Context(), engine.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// post sends a message to the gateway directly, without an MCP client.
func (w *world) post(t *testing.T, token, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// waitingNow returns the approvals that wait at this moment.
func (w *world) waitingNow(t *testing.T) []host.Approval {
	t.Helper()
	list, err := w.host.Approvals().List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return list
}
