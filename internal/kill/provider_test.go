package kill

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/history"
)

// provider is the model of the runs. It runs in the test's process, so it survives the kills. It checks every
// request against the rules of its wire format, in particular that each call has exactly one result. Its next
// response follows from the call ids in the conversation, so it has no state.
type provider struct {
	url string

	mu       sync.Mutex
	bodies   int
	findings []string
}

// wish is a tool call in a response of the provider.
type wish struct {
	tool string
	args map[string]any
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// callID matches the call ids of a conversation: call_tTURN_INDEX.
var callID = regexp.MustCompile(`call_t(\d+)_\d+`)

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	err = history.Check(r.URL.String(), body)
	p.mu.Lock()
	p.bodies++
	if err != nil {
		p.findings = append(p.findings, fmt.Sprintf("%v in %s", err, body))
	}
	p.mu.Unlock()
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, err.Error()),
			http.StatusBadRequest)
		return
	}
	turn := 1
	for _, m := range callID.FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(m[1])) // digits
		turn = max(turn, n+1)
	}
	text, calls := leadSays(turn)
	var asked struct{ Model string }
	_ = json.Unmarshal(body, &asked) // already checked by history.Check
	switch {
	case strings.Contains(string(body), `\u003cconversation>`), strings.Contains(string(body), "<conversation>"):
		text, calls = "the gist of it", nil
	case asked.Model == "helper":
		text, calls = helperSays(turn)
	}
	time.Sleep(5 * time.Millisecond)
	w.Header().Set("Content-Type", "text/event-stream")
	stream := chatStream
	if strings.HasSuffix(r.URL.Path, "/messages") {
		stream = anthropicStream
	}
	for _, event := range stream(text, turn, calls, len(body)/4) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", event) // fails if the client was killed
	}
}

// leadSays returns the response of the main agent in a turn. Every turn calls a safe and two unsafe tools
// concurrently. One turn also calls a tool that needs a decision, and one calls another agent.
func leadSays(turn int) (string, []wish) {
	if turn > turns {
		return "all done", nil
	}
	var calls []wish
	for j := range 3 {
		tool := unsafeTool
		if j == 1 {
			tool = safeTool
		}
		calls = append(calls, wish{tool, map[string]any{"ms": 10 + 20*j}})
	}
	switch turn {
	case asking:
		calls = append(calls, wish{askedTool, map[string]any{"a": 1, "b": 1}})
	case helping:
		calls = append(calls, wish{agentTool, map[string]any{"message": "please help"}})
	}
	return fmt.Sprint("turn ", turn), calls
}

// helperSays returns the response of the called agent. Its run needs a decision too.
func helperSays(turn int) (string, []wish) {
	if turn > 1 {
		return "helped", nil
	}
	return "I see", []wish{{unsafeTool, map[string]any{"ms": 20}}, {safeTool, map[string]any{"ms": 40}},
		{askedTool, map[string]any{"a": 1, "b": 1}}}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: values of this file always encode
	}
	return string(b)
}

func chatStream(said string, turn int, calls []wish, tokens int) []string {
	list := []any{}
	for i, c := range calls {
		list = append(list, map[string]any{"index": i, "id": fmt.Sprintf("call_t%d_%d", turn, i), "type": "function",
			"function": map[string]any{"name": c.tool, "arguments": text(c.args)}})
	}
	end := "stop"
	if len(calls) > 0 {
		end = "tool_calls"
	}
	delta := map[string]any{"role": "assistant", "content": said, "tool_calls": list}
	return []string{
		text(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}}),
		text(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{},
			"finish_reason": end}}}),
		text(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": tokens,
			"completion_tokens": 5}}),
		"[DONE]",
	}
}

func anthropicStream(said string, turn int, calls []wish, tokens int) []string {
	events := []string{text(map[string]any{"type": "message_start",
		"message": map[string]any{"id": "m", "content": []any{},
			"usage": map[string]any{"input_tokens": tokens, "output_tokens": 1}}})}
	block := func(i int, start, delta map[string]any) {
		events = append(events, text(map[string]any{"type": "content_block_start", "index": i, "content_block": start}),
			text(map[string]any{"type": "content_block_delta", "index": i, "delta": delta}),
			text(map[string]any{"type": "content_block_stop", "index": i}))
	}
	block(0, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": said})
	for i, c := range calls {
		block(i+1, map[string]any{"type": "tool_use", "id": fmt.Sprintf("call_t%d_%d", turn, i), "name": c.tool,
			"input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": text(c.args)})
	}
	end := "end_turn"
	if len(calls) > 0 {
		end = "tool_use"
	}
	return append(events, text(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": end},
		"usage": map[string]any{"output_tokens": 5}}),
		`{"type":"message_stop"}`)
}

// check reports the errors found in the requests.
func (p *provider) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bodies == 0 {
		t.Error("the provider got no request, so the test is not effective")
	}
	for i, f := range p.findings {
		if i == 3 {
			t.Errorf("and %d more", len(p.findings)-3)
			break
		}
		t.Error(f)
	}
}
