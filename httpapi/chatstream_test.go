package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/httpapi"
)

// sse is an event of a stream, or a comment.
type sse struct{ id, event, data string }

// streamOf opens a stream and yields its events.
func streamOf(t *testing.T, ctx context.Context, method, url, body string, header ...string) (<-chan sse, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	events := make(chan sse, 1024)
	go func() {
		defer http.DefaultClient.CloseIdleConnections()
		defer res.Body.Close()
		defer close(events)
		var e sse
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch key {
			case "":
				if lines.Text() == ":" {
					e.event = "keep-alive"
				}
				if e != (sse{}) {
					events <- e
				}
				e = sse{}
			case "id":
				e.id = value
			case "event":
				e.event = value
			case "data":
				e.data = value
			}
		}
	}()
	return events, res.Header
}

// textOf returns the text of a delta event, and the data of any other event. A text can arrive in several events.
func textOf(t *testing.T, e sse) string {
	t.Helper()
	if e.event != "text" {
		return e.data
	}
	var delta struct{ Delta string }
	if err := json.Unmarshal([]byte(e.data), &delta); err != nil {
		t.Errorf("%s: %v", e.data, err)
	}
	return delta.Delta
}

// TestReconnect checks that a client that loses its connection can continue the stream, and gets every piece of text
// once.
func TestReconnect(t *testing.T) {
	t.Run("RP-3_last_event", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow", Beat: time.Millisecond}))
		defer s.Close()
		ctx, leave := context.WithCancel(t.Context())
		events, header := streamOf(t, ctx, "POST", s.URL+"/chat/stream", `{"message":"wait"}`)
		var kinds []string
		text, last, alive := "", "", false
		for e := range events {
			if e.event == "keep-alive" && strings.HasSuffix(strings.Join(kinds, " "), "tool_start") {
				alive = true
				break // the call waits: silence
			}
			if e.event == "keep-alive" {
				continue
			}
			kinds = append(kinds, e.event)
			text += textOf(t, e)
			last = e.id
		}
		if got := strings.Join(kinds, " "); !strings.HasSuffix(got, "text tool_start") || !alive {
			t.Errorf("events %s, alive %v", got, alive)
		}
		leave()
		for range events { // until the stream has ended
		}
		run := header.Get("Tenon-Run")
		close(c.open)
		again, _ := streamOf(t, t.Context(), "GET", s.URL+"/chat/stream", "", "Last-Event-ID", last)
		kinds = nil
		for e := range again {
			if e.event != "keep-alive" {
				kinds = append(kinds, e.event)
				text += textOf(t, e)
			}
		}
		if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "tool text") || !strings.HasSuffix(got, "done") {
			t.Errorf("events after reconnecting: %s", got)
		}
		if strings.Count(text, "I wait") != 1 || !strings.Contains(text, `"response":"Done."`) || c.effects.Load() != 1 {
			t.Errorf("%d effects, %s", c.effects.Load(), text)
		}
		whole, _ := streamOf(t, t.Context(), "GET", s.URL+"/chat/stream?run="+run, "")
		text = ""
		for e := range whole {
			text += e.event + " "
		}
		if !strings.Contains(text, "tool_start ") || !strings.HasSuffix(strings.ReplaceAll(text, "keep-alive ", ""), "done ") {
			t.Errorf("the whole stream: %s", text)
		}
	})
}

// TestChatEvents checks the events of calls that need approval, are denied or fail.
func TestChatEvents(t *testing.T) {
	eventsOf := func(t *testing.T, url string, method, body string) (kinds string, calls map[string]httpapi.ChatCall) {
		t.Helper()
		calls = map[string]httpapi.ChatCall{}
		stream, _ := streamOf(t, t.Context(), method, url, body)
		for e := range stream {
			if e.event == "text" {
				continue
			}
			kinds += e.event + " "
			var c httpapi.ChatCall
			if err := json.Unmarshal([]byte(e.data), &c); err != nil {
				t.Errorf("%s: %v", e.data, err)
			}
			calls[e.event] = c
		}
		return kinds, calls
	}
	t.Run("RP-3_approval", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "asks"}))
		defer s.Close()
		kinds, calls := eventsOf(t, s.URL+"/chat/stream", "POST", `{"message":"pay"}`)
		asked := calls["approval"]
		if kinds != "approval error " || asked.Name != "pay" || asked.Server != "bank" || asked.Step != "1.0" {
			t.Fatalf("%s %+v", kinds, asked)
		}
		run, _, _ := strings.Cut(asked.ID, "/")
		if _, _, err := h.Approvals().Decide(t.Context(), run, asked.Step, agent.Ruling{Verdict: tenon.Deny,
			Reason: "too dear"}); err != nil {
			t.Fatal(err)
		}
		if err := h.Runs().Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		kinds, calls = eventsOf(t, s.URL+"/chat/stream?run="+run, "GET", "")
		if !strings.HasPrefix(kinds, "approval tool ") || calls["tool"].Outcome != "denied" || *calls["tool"].Success ||
			!strings.Contains(calls["tool"].Error, "too dear") || c.effects.Load() != 0 {
			t.Errorf("%s %+v", kinds, calls["tool"])
		}
	})
	t.Run("RP-3_failed", func(t *testing.T) {
		h, _ := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "fails"}))
		defer s.Close()
		kinds, calls := eventsOf(t, s.URL+"/chat/stream", "POST", `{"message":"try"}`)
		if tool := calls["tool"]; kinds != "tool_start tool done " || tool.Outcome != "failed" || *tool.Success ||
			!strings.Contains(tool.Error, "the bank is closed") {
			t.Errorf("%s %+v", kinds, tool)
		}
	})
}

// TestCompletionKeepsAlive checks that a stream of completions sends comments while a call runs, so that the connection
// is not closed as idle.
func TestCompletionKeepsAlive(t *testing.T) {
	t.Run("RP-4_silence", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Beat: time.Millisecond}))
		defer s.Close()
		stream, _ := streamOf(t, t.Context(), "POST", s.URL+"/v1/chat/completions",
			`{"model":"slow","stream":true,"messages":[{"role":"user","content":"wait"}]}`)
		text, alive, opened := "", 0, false
		for e := range stream {
			text += e.data
			if e.event == "keep-alive" && strings.Contains(text, "wait.") {
				if alive++; alive > 2 && !opened {
					opened = true
					close(c.open)
				}
			}
		}
		if !opened || !strings.HasSuffix(text, "[DONE]") || !strings.Contains(text, "Done.") {
			t.Errorf("%d comments, %s", alive, text)
		}
	})
}

// TestOnDisconnect checks both values of serve.on_disconnect.
func TestOnDisconnect(t *testing.T) {
	for name, want := range map[string]tenon.RunState{"RP-3_continue": tenon.RunCompleted, "RP-3_cancel": tenon.RunCancelled} {
		t.Run(name, func(t *testing.T) {
			h, c := paying(t)
			handler := httpapi.New(h, httpapi.Config{Agent: "slow", CancelLeft: want == tenon.RunCancelled})
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/chat", strings.NewReader(`{"message":"wait"}`))
				req.Header.Set("Content-Type", "application/json")
				handler.ServeHTTP(httptest.NewRecorder(), req)
			}()
			<-c.began
			leave()
			<-ended
			if want == tenon.RunCompleted {
				close(c.open)
			}
			list, err := h.Runs().List(t.Context(), engine.Filter{})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			for _, err := range h.Runs().Events(t.Context(), list[0].ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if run, err := h.Runs().Get(t.Context(), list[0].ID); err != nil || run.State != want {
				t.Errorf("the run is %s: %v", run.State, err)
			}
		})
	}
}

// TestQueueBehindAPerson checks that a message to a session is refused, and not queued, while its run waits for an
// approval.
func TestQueueBehindAPerson(t *testing.T) {
	t.Run("RP-3_queue_waiting", func(t *testing.T) {
		h, _ := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "asks"}))
		defer s.Close()
		_, _, text := send(t, s.URL+"/chat", `{"message":"pay"}`)
		_, body, _ := strings.Cut(text, "\r\n\r\n")
		var waiting httpapi.ChatWaiting
		if err := json.Unmarshal([]byte(body), &waiting); err != nil || len(waiting.Approvals) != 1 {
			t.Fatal(text, err)
		}
		status, _, text := send(t, s.URL+"/chat", `{"message":"more","sessionId":"`+waiting.SessionID+`","busy":"queue"}`)
		if status != 409 || !strings.Contains(text, waiting.Run) || !strings.Contains(text, "waits for an answer") {
			t.Errorf("HTTP %d %s", status, text)
		}
	})
}

// TestBusy checks what happens to a second message to a session whose run is still working.
func TestBusy(t *testing.T) {
	for name, tt := range map[string]struct {
		busy   string
		status int
		runs   int
	}{
		"RP-3_refuse": {"", 409, 1}, "RP-3_invalid": {"later", 400, 1},
		"RP-3_queue": {"queue", 200, 2}, "RP-3_steer": {"steer", 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := paying(t)
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "slow"}))
			defer s.Close()
			first, _ := streamOf(t, t.Context(), "POST", s.URL+"/chat/stream", `{"message":"wait"}`)
			<-c.began
			list, err := h.Runs().List(t.Context(), engine.Filter{})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			free := sync.OnceFunc(func() { close(c.open) })
			defer free()
			if tt.status == 200 {
				go func() {
					for e := range h.Runs().Events(t.Context(), list[0].ID, 0) {
						if tt.busy == "queue" || e.Kind == agent.EventMessage {
							free()
						}
					}
				}()
			}
			status, _, text := send(t, s.URL+"/chat", `{"message":"more","sessionId":"`+list[0].Session+`","busy":"`+tt.busy+`"}`)
			if status != tt.status {
				t.Errorf("HTTP %d %s", status, text)
			}
			free()
			for range first { // until the stream has ended
			}
			if list, err := h.Runs().List(t.Context(), engine.Filter{}); err != nil || len(list) != tt.runs {
				t.Errorf("%d runs, want %d: %v", len(list), tt.runs, err)
			}
		})
	}
}
