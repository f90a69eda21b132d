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

// provider is the model of the runs, in the test's own process: it outlives those that
// are killed, and holds every body that they send to the rules of its wire, above all
// that each call has exactly one result. What it says next follows from the ids of the
// calls in the conversation, so that it needs no memory of its own.
type provider struct {
	url string

	mu       sync.Mutex
	bodies   int
	findings []string
}

// wish is a call that the provider makes.
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

// callID finds the calls of a conversation: call_tTURN_INDEX.
var callID = regexp.MustCompile(`call_t(\d+)_\d+`)

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	err = history.Check(r.URL.String(), body)
	p.mu.Lock()
	p.bodies++
	if err != nil {
		p.findings = append(p.findings, fmt.Sprintf("%v in %s", err, body))
	}
	p.mu.Unlock()
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, err.Error()), http.StatusBadRequest)
		return
	}
	turn := 1
	for _, m := range callID.FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(m[1])) // digits
		turn = max(turn, n+1)
	}
	text, calls := leadSays(turn)
	var asked struct{ Model string }
	_ = json.Unmarshal(body, &asked) // history.Check has read it
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
		_, _ = fmt.Fprintf(w, "data: %s\n\n", event) // who was killed sees nothing
	}
}

// leadSays is what the agent that is asked says in a turn: every turn calls a safe and
// two unsafe tools at once, one a tool that asks as well, and one another agent.
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

// helperSays is what the agent that is called says: a person is asked in its run, too.
func helperSays(turn int) (string, []wish) {
	if turn > 1 {
		return "helped", nil
	}
	return "I see", []wish{{unsafeTool, map[string]any{"ms": 20}}, {safeTool, map[string]any{"ms": 40}}, {askedTool, map[string]any{"a": 1, "b": 1}}}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of this file
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
		text(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": end}}}),
		text(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": tokens, "completion_tokens": 5}}),
		"[DONE]",
	}
}

func anthropicStream(said string, turn int, calls []wish, tokens int) []string {
	events := []string{text(map[string]any{"type": "message_start", "message": map[string]any{"id": "m", "content": []any{},
		"usage": map[string]any{"input_tokens": tokens, "output_tokens": 1}}})}
	block := func(i int, start, delta map[string]any) {
		events = append(events, text(map[string]any{"type": "content_block_start", "index": i, "content_block": start}),
			text(map[string]any{"type": "content_block_delta", "index": i, "delta": delta}),
			text(map[string]any{"type": "content_block_stop", "index": i}))
	}
	block(0, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": said})
	for i, c := range calls {
		block(i+1, map[string]any{"type": "tool_use", "id": fmt.Sprintf("call_t%d_%d", turn, i), "name": c.tool, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": text(c.args)})
	}
	end := "end_turn"
	if len(calls) > 0 {
		end = "tool_use"
	}
	return append(events, text(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": end}, "usage": map[string]any{"output_tokens": 5}}),
		`{"type":"message_stop"}`)
}

// check reports what was wrong with the bodies.
func (p *provider) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bodies == 0 {
		t.Error("the provider was never asked: the test does not test what it should")
	}
	for i, f := range p.findings {
		if i == 3 {
			t.Errorf("and %d more", len(p.findings)-3)
			break
		}
		t.Error(f)
	}
}
