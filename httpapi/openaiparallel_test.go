package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/policy"
)

// TestClientToolsParallel sends the same results several times at once, as clients do that repeat a request after a
// short time limit. Each request gets the answer, and the run continues.
func TestClientToolsParallel(t *testing.T) {
	h, c := sensing(t, t.TempDir(), policy.ApprovalNever)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	defer s.Close()
	const rounds, times = 12, 5
	for round := range rounds {
		head := fmt.Sprintf(`{"model":"default",%s,"messages":[{"role":"user","content":"How warm? %d"}`, clientTools, round)
		_, a, _ := completes(t, s.URL, head+"]}")
		body := head + resultsOf(t, a.Choices[0].Message.Calls, "21 °C") + "]}"
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
	}
	if n := c.effects.Load(); n != rounds {
		t.Errorf("RP-4: %d effects", n)
	}
}
