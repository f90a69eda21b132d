package model_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// stepping is a response body that returns one event per Read. At each Read it records the deltas that the consumer has
// received so far.
type stepping struct {
	events []string
	given  int
	seen   func() int // number of text deltas that the consumer has
	late   []int      // events whose delta had not arrived at the next Read
	deltas int        // number of text deltas in the events so far
}

func (s *stepping) Read(p []byte) (int, error) {
	if s.given > 0 && s.seen() < s.deltas {
		s.late = append(s.late, s.given-1)
	}
	if s.given == len(s.events) {
		return 0, io.EOF
	}
	e := s.events[s.given]
	s.given++
	if strings.Contains(e, "piece") {
		s.deltas++
	}
	return copy(p, "data: "+e+"\n\n"), nil
}

// TestDeltaIsForwardedBeforeTheNextIsRead checks that a delta reaches the consumer before the next
// byte is read from the provider.
func TestDeltaIsForwardedBeforeTheNextIsRead(t *testing.T) {
	for wire, events := range map[string][]string{
		"anthropic": {`{"type":"message_start","message":{"id":"m"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"piece 1"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"piece 2"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`},
		"chat": {`{"choices":[{"delta":{"content":"piece 1"}}]}`, `{"choices":[{"delta":{"content":"piece 2"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, `[DONE]`},
		"responses": {`{"type":"response.output_text.delta","output_index":0,"delta":"piece 1"}`, `{"type":"response.output_text.delta","output_index":0,"delta":"piece 2"}`,
			`{"type":"response.completed","response":{"status":"completed"}}`},
		"gemini": {`{"candidates":[{"content":{"parts":[{"text":"piece 1"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"piece 2"}]},"finishReason":"STOP"}]}`},
	} {
		t.Run(wire, func(t *testing.T) {
			got := 0
			body := &stepping{events: events, seen: func() int { return got }}
			for d, err := range open(t, wire, "http://localhost", model.Env{Transport: fixed(func() io.Reader { return body })}).Generate(t.Context(), question) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Kind == tenon.DeltaText {
					got++
				}
			}
			if got != 2 || len(body.late) > 0 {
				t.Errorf("%d pieces, those of events %v came late", got, body.late)
			}
		})
	}
}
