package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// atWork begins a chat whose run calls a tool until free is called. It returns the session and the run.
func atWork(t *testing.T) (url string, run tenon.Run, h *host.Host, free func()) {
	t.Helper()
	h, c := paying(t)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow"}))
	first, _ := streamOf(t, t.Context(), "POST", s.URL+"/chat/stream", `{"message":"wait"}`)
	<-c.began
	list, err := h.Runs().List(t.Context(), engine.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	free = sync.OnceFunc(func() { close(c.open) })
	t.Cleanup(func() {
		free()
		for range first { // until the stream has ended
		}
		s.Close()
	})
	return s.URL, list[0], h, free
}

// TestSteerWithKey repeats a message into a run, at the same time and after the end of the run. It is in the run once.
func TestSteerWithKey(t *testing.T) {
	t.Run("RP-3_steer_key", func(t *testing.T) {
		url, run, h, free := atWork(t)
		body := `{"message":"more","sessionId":"` + run.Session + `","busy":"steer"}`
		type answer struct {
			status   int
			replayed string
			text     string
		}
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				status, header, text := send(t, url+"/chat", body, "Idempotency-Key", "k")
				answers <- answer{status, header.Get("Idempotency-Replayed"), text}
			}()
		}
		for e := range h.Runs().Events(t.Context(), run.ID, 0) {
			if e.Kind == agent.EventMessage {
				free()
			}
		}
		replayed := 0
		for range 2 {
			a := <-answers
			if a.status != 200 || !strings.Contains(a.text, run.ID) {
				t.Errorf("HTTP %d %s", a.status, a.text)
			}
			if a.replayed == "true" {
				replayed++
			}
		}
		status, header, text := send(t, url+"/chat", body, "Idempotency-Key", "k")
		if status != 200 || header.Get("Idempotency-Replayed") != "true" || !strings.Contains(text, run.ID) || replayed != 1 {
			t.Errorf("HTTP %d, %d replayed before, %v %s", status, replayed, header, text)
		}
		events, err := h.Runs().Open(run.ID).Journal(t.Context(), 0, 0)
		events = slices.DeleteFunc(events, func(e tenon.Event) bool { return e.Kind != agent.EventMessage })
		if err != nil || len(events) != 1 {
			t.Errorf("%d messages in the run, %v", len(events), err)
		}
		if list, err := h.Runs().List(t.Context(), engine.Filter{}); err != nil || len(list) != 1 {
			t.Errorf("%d runs, %v", len(list), err)
		}
	})
}

// TestQueueOrder queues messages one after the other. They get their turns in this order.
func TestQueueOrder(t *testing.T) {
	t.Run("RP-3_queue_order", func(t *testing.T) {
		url, run, h, free := atWork(t)
		var all sync.WaitGroup
		const n = 6
		for i := range n {
			all.Go(func() {
				body := fmt.Sprintf(`{"message":"m%d","sessionId":%q,"busy":"queue"}`, i, run.Session)
				if status, _, text := send(t, url+"/chat", body); status != 200 {
					t.Errorf("HTTP %d %s", status, text)
				}
			})
			time.Sleep(50 * time.Millisecond) // they arrive in this order
		}
		free()
		all.Wait()
		list, err := h.Runs().List(t.Context(), engine.Filter{Session: run.Session})
		if err != nil || len(list) != n+1 {
			t.Fatal(list, err)
		}
		for i := range n {
			if r := list[n-1-i]; r.Title != fmt.Sprint("m", i) || r.Parent != list[n-i].ID || r.ParentSeq != list[n-i].Seq {
				t.Errorf("turn %d: %s behind %s, event %d of %d", i, r.Title, r.Parent, r.ParentSeq, list[n-i].Seq)
			}
		}
	})
}

// TestBadScript names a file that is no script as the model. It is a mistake of the request, and the answer quotes
// nothing of the file.
func TestBadScript(t *testing.T) {
	h, _ := paying(t)
	file := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(file, []byte("s3cret: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httpapi.New(h, httpapi.Config{Agent: "slow"})
	for path, key := range map[string]string{"/chat": "message", "/api/v1/runs": "question"} {
		body, err := json.Marshal(map[string]string{key: "q", "model": "script:" + file, "agent": "slow"})
		if err != nil {
			t.Fatal(err)
		}
		status, _, text := request(t, s, "POST", path, "application/json", string(body))
		if status != 400 || strings.Contains(text, "s3cret") {
			t.Errorf("%s: HTTP %d %s", path, status, text)
		}
	}
}
