package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/policy"
)

// TestClientToolsParallel sends the same results several times at once, as clients with a short timeout do when they
// repeat a request. Each request gets the answer, and the run continues once. A message of the user after the results is
// recorded once.
func TestClientToolsParallel(t *testing.T) {
	h, c := sensing(t, t.TempDir(), policy.ApprovalNever)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	defer s.Close()
	const rounds, times = 12, 5
	for round := range rounds {
		head := fmt.Sprintf(`{"model":"default",%s,"messages":[{"role":"user","content":"How warm? %d"}`, clientTools, round)
		_, a, _ := completes(t, s.URL, head+"]}")
		more := ""
		if round%2 == 1 {
			more = `,{"role":"user","content":"Say it in one word."}`
		}
		body := head + resultsOf(t, a.Choices[0].Message.Calls, "21 °C") + more + "]}"
		var wg sync.WaitGroup
		for range times {
			wg.Go(func() {
				status, _, text := send(t, s.URL+"/v1/chat/completions", body)
				if status != 200 {
					t.Errorf("RP-4: %d %s", status, text)
				}
			})
		}
		wg.Wait()
		if run, err := h.Runs().Get(t.Context(), a.Tenon.Run); err != nil || run.State != tenon.RunCompleted {
			t.Errorf("RP-4: the run is %s, %v", run.State, err)
		}
		if n := messagesIn(t, h, a.Tenon.Run); n != round%2 {
			t.Errorf("RP-4_message_once: round %d recorded %d messages", round, n)
		}
	}
	if n := c.effects.Load(); n != rounds {
		t.Errorf("RP-4: %d effects", n)
	}
}

// messagesIn counts the messages that a run received.
func messagesIn(t *testing.T, h *host.Host, run string) (n int) {
	t.Helper()
	events, err := h.Runs().Open(run).Journal(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == agent.EventMessage {
			n++
		}
	}
	return n
}
