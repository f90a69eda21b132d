package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/httpapi"
)

// TestLeftTogether checks serve.on_disconnect: cancel with two requests that wait for one run. The run is cancelled when
// the last one has left.
func TestLeftTogether(t *testing.T) {
	for name, leaving := range map[string][]int{"RP-3_first_left": {0}, "RP-3_second_left": {1}, "RP-3_both_left": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			h, c := paying(t)
			handler, ended := httpapi.New(h, httpapi.Config{Agent: "slow", CancelLeft: true}), []chan struct{}{make(chan struct{}), make(chan struct{})}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(w, r)
				close(ended[len(r.Header.Get("N"))])
			}))
			defer s.Close()
			var leave []context.CancelFunc
			var streams []<-chan sse
			for _, n := range []string{"", "1"} {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				events, _ := streamOf(t, ctx, "POST", s.URL+"/chat/stream", `{"message":"wait"}`, "Idempotency-Key", "k", "N", n)
				for e := range events {
					if e.event == "tool_start" {
						break
					}
				}
				leave, streams = append(leave, cancel), append(streams, events)
			}
			<-c.began
			for _, i := range leaving {
				leave[i]()
				<-ended[i]
			}
			list, err := h.Runs().List(t.Context(), engine.Filter{})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			want := tenon.RunCompleted
			if len(leaving) == 2 {
				want = tenon.RunCancelled
			} else {
				close(c.open)
				last := sse{}
				for e := range streams[1-leaving[0]] {
					last = e
				}
				if last.event != "done" || !strings.Contains(last.data, "Done.") {
					t.Errorf("the request that stayed ends with %v", last)
				}
			}
			for _, err := range h.Runs().Events(t.Context(), list[0].ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if run, err := h.Runs().Get(t.Context(), list[0].ID); err != nil || run.State != want {
				t.Errorf("the run is %s, want %s: %v", run.State, want, err)
			}
		})
	}
}

// TestSteerWaiting sends a message into a run that waits for an approval. The answer says that the message was accepted.
func TestSteerWaiting(t *testing.T) {
	h, _ := paying(t)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "asks"}))
	defer s.Close()
	status, _, text := send(t, s.URL+"/chat", `{"message":"pay"}`)
	list, err := h.Runs().List(t.Context(), engine.Filter{})
	if status != 409 || strings.Contains(text, `"accepted"`) || err != nil || len(list) != 1 {
		t.Fatal(status, text, list, err)
	}
	for name, path := range map[string]string{"RP-4_chat": "/chat", "RP-4_stream": "/chat/stream"} {
		t.Run(name, func(t *testing.T) {
			status, header, text := send(t, s.URL+path, `{"message":"`+name+`","sessionId":"`+list[0].Session+`","busy":"steer"}`)
			want := 202
			if path == "/chat/stream" {
				want = 200
			}
			if status != want || !strings.Contains(text, `"accepted":true`) || !strings.Contains(text, "do not send it again") ||
				!strings.Contains(text, `"approvals":[{`) || header.Get("Tenon-Run") != list[0].ID {
				t.Errorf("HTTP %d %v %s", status, header, text)
			}
		})
	}
	sent := 0
	for e, err := range h.Runs().Events(t.Context(), list[0].ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == agent.EventMessage {
			sent++
		}
	}
	if sent != 2 {
		t.Errorf("%d messages in the run", sent)
	}
}

// TestKeyAcross uses one key with different values of busy and sessionId. The message is delivered once.
func TestKeyAcross(t *testing.T) {
	t.Run("RP-5_busy", func(t *testing.T) {
		url, run, h, free := atWork(t)
		body := func(busy string) string {
			return `{"message":"more","sessionId":"` + run.Session + `","busy":"` + busy + `"}`
		}
		go func() {
			for e := range h.Runs().Events(t.Context(), run.ID, 0) {
				if e.Kind == agent.EventMessage {
					free()
				}
			}
		}()
		for i, busy := range []string{"steer", "queue", "refuse", "steer"} {
			status, header, text := send(t, url+"/chat", body(busy), "Idempotency-Key", "k")
			if status != 200 || !strings.Contains(text, run.ID) || (header.Get("Idempotency-Replayed") == "true") != (i > 0) {
				t.Errorf("%s: HTTP %d %v %s", busy, status, header, text)
			}
		}
		for _, other := range []string{`{"message":"more"}`, strings.Replace(body("queue"), "more", "other", 1)} {
			if status, _, text := send(t, url+"/chat", other, "Idempotency-Key", "k"); status != 409 {
				t.Errorf("%s: HTTP %d %s", other, status, text)
			}
		}
		if list, err := h.Runs().List(t.Context(), engine.Filter{}); err != nil || len(list) != 1 {
			t.Errorf("%d runs, %v", len(list), err)
		}
	})
	t.Run("RP-5_session", func(t *testing.T) {
		h, c := paying(t)
		close(c.open)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow"}))
		defer s.Close()
		first, _, text := send(t, s.URL+"/chat", `{"message":"wait"}`, "Idempotency-Key", "new")
		list, err := h.Runs().List(t.Context(), engine.Filter{})
		if first != 200 || err != nil || len(list) != 1 {
			t.Fatal(first, text, list, err)
		}
		within := `{"message":"wait","sessionId":"` + list[0].Session + `"}`
		for _, tt := range []struct {
			body, key string
			status    int
		}{{within, "new", 409}, {strings.Replace(within, `"}`, `","busy":"queue"}`, 1), "new", 409},
			{strings.Replace(within, `"}`, `","busy":"steer"}`, 1), "new", 409}, {within, "old", 200}, {`{"message":"wait"}`, "old", 409},
			{within, "old", 200}, {`{"message":"wait"}`, "new", 200}} {
			if status, _, text := send(t, s.URL+"/chat", tt.body, "Idempotency-Key", tt.key); status != tt.status {
				t.Errorf("key %s, %s: HTTP %d %s", tt.key, tt.body, status, text)
			}
		}
		if list, err := h.Runs().List(t.Context(), engine.Filter{}); err != nil || len(list) != 2 {
			t.Errorf("%d runs, %v", len(list), err)
		}
	})
	t.Run("RP-5_steer_text", func(t *testing.T) {
		url, run, h, free := atWork(t)
		for _, tt := range []struct {
			text   string
			status int
		}{{"one", 200}, {"two", 409}, {"one", 200}} {
			status, _, text := send(t, url+"/api/v1/runs/"+run.ID+"/steer", `{"text":"`+tt.text+`"}`, "Idempotency-Key", "k")
			if status != tt.status {
				t.Errorf("%s: HTTP %d %s", tt.text, status, text)
			}
		}
		free()
		sent := 0
		for e := range h.Runs().Events(t.Context(), run.ID, 0) {
			if e.Kind == agent.EventMessage {
				sent++
			}
		}
		if sent != 1 {
			t.Errorf("%d messages in the run", sent)
		}
	})
}

// TestResumedTurns resumes a stream after each of its events. The text is the same, with the blank line between turns.
func TestResumedTurns(t *testing.T) {
	t.Run("RP-4_blank_line", func(t *testing.T) {
		h, c := paying(t)
		close(c.open)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow"}))
		defer s.Close()
		read := func(events <-chan sse) (list []sse, texts []string) {
			for e := range events {
				if e.id == "" {
					continue
				}
				text := ""
				if e.event == "text" {
					text = textOf(t, e)
				}
				list, texts = append(list, e), append(texts, text)
			}
			return list, texts
		}
		events, _ := streamOf(t, t.Context(), "POST", s.URL+"/chat/stream", `{"message":"wait"}`)
		all, texts := read(events)
		whole := strings.Join(texts, "")
		if !strings.Contains(whole, "wait.\n\nDone.") {
			t.Fatalf("%q", whole)
		}
		for i, e := range all[:len(all)-1] {
			events, _ := streamOf(t, t.Context(), "GET", s.URL+"/chat/stream", "", "Last-Event-ID", e.id)
			if _, rest := read(events); strings.Join(texts[:i+1], "")+strings.Join(rest, "") != whole {
				t.Errorf("after %s: %q and %q", e.id, texts[:i+1], rest)
			}
		}
	})
}

// TestQueueWakes checks that the end of a run begins the next message of the queue. No other check of the queue comes
// during the test.
func TestQueueWakes(t *testing.T) {
	t.Run("RP-4_queue_wakes", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.SlowQueue(h, httpapi.Config{Agent: "slow"}))
		defer s.Close()
		first, _ := streamOf(t, t.Context(), "POST", s.URL+"/chat/stream", `{"message":"wait"}`)
		<-c.began
		list, err := h.Runs().List(t.Context(), engine.Filter{})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		answers := make(chan int, 3)
		for range cap(answers) {
			go func() {
				status, _, _ := send(t, s.URL+"/chat", `{"message":"more","sessionId":"`+list[0].Session+`","busy":"queue"}`)
				answers <- status
			}()
		}
		close(c.open)
		for range cap(answers) {
			if status := <-answers; status != 200 {
				t.Errorf("HTTP %d", status)
			}
		}
		for range first { // until the stream has ended
		}
	})
}

// TestStrayRequests checks the answers to requests that are nearly right.
func TestStrayRequests(t *testing.T) {
	h, c := paying(t)
	close(c.open)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow"}))
	defer s.Close()
	if status, _, text := send(t, s.URL+"/chat", `{"message":"wait"}`); status != 200 {
		t.Fatal(status, text)
	}
	for name, tt := range map[string]struct {
		path, body string
		status     int
		has        string
	}{
		"RP-5_model":        {"/chat", `{"message":"hi","model":"openai-compatible/x"}`, 400, "openai-compatible"},
		"RP-5_slash":        {"/chat/", `{"message":"hi"}`, 404, "did you mean /chat?"},
		"RP-5_stream_slash": {"/api/chat/stream/", `{"message":"hi"}`, 404, "did you mean /api/chat/stream?"},
		"RP-5_last_session": {"/chat", `{"message":"hi","sessionId":"-1"}`, 404, "Session not found"},
		"RP-5_tool_name":    {"/mcp/tools/call", `{"name":"pay","arguments":{}}`, 400, "did you mean toolName"},
		"RP-5_prompt_name":  {"/mcp/prompts/get", `{"serverId":"bank","name":"x"}`, 400, "did you mean promptName"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, text := send(t, s.URL+tt.path, tt.body); status != tt.status || !strings.Contains(text, tt.has) {
				t.Errorf("HTTP %d %s", status, text)
			}
		})
	}
}
