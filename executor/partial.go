package executor

import (
	"context"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// streamed collects the answer of a model while it arrives. If the call is stopped, the journal then contains the
// text so far. Only the goroutine that reads the model's stream uses it. The zero value has no text.
type streamed struct{ text, thinking []byte }

// add appends a piece of the answer. Each text is cut off at [agent.MaxPartial].
func (s *streamed) add(d tenon.Delta) {
	switch d.Kind {
	case tenon.DeltaText:
		s.text = appendPiece(s.text, d.Text)
	case tenon.DeltaThinking:
		s.thinking = appendPiece(s.thinking, d.Text)
	}
}

// reset drops the text, because the model begins its answer again, or another model is asked.
func (s *streamed) reset() { s.text, s.thinking = s.text[:0], s.thinking[:0] }

// partial returns the text so far, or nil if there is none.
func (s *streamed) partial() *agent.Partial {
	if len(s.text)+len(s.thinking) == 0 {
		return nil
	}
	return &agent.Partial{Text: string(s.text), Thinking: string(s.thinking)}
}

// stopped returns the event of a model call that was cancelled, or whose process is closing. If no text has arrived,
// it returns the cause as an error instead, because the outcome is not known.
func (s *streamed) stopped(ctx context.Context, step string) ([]tenon.Event, error) {
	p := s.partial()
	if p == nil {
		return nil, context.Cause(ctx)
	}
	return []tenon.Event{{Step: step, Kind: tenon.EventInterrupted, Data: tenon.EventData(p)}}, nil
}

func appendPiece(b []byte, piece string) []byte {
	room := agent.MaxPartial - len(b)
	if len(piece) <= room {
		return append(b, piece...)
	}
	for room > 0 && !utf8.RuneStart(piece[room]) {
		room--
	}
	return append(b, piece[:max(room, 0)]...)
}
