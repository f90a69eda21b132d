package executor

import (
	"context"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// streamed collects the answer of a model while it arrives, so that the journal keeps it if the call is stopped. Only
// the goroutine that reads the model's stream uses it. The zero value has no text.
type streamed struct{ text, thinking []byte }

// add collects a piece. A text ends at [agent.MaxPartial].
func (s *streamed) add(d tenon.Delta) {
	switch d.Kind {
	case tenon.DeltaText:
		s.text = appendPiece(s.text, d.Text)
	case tenon.DeltaThinking:
		s.thinking = appendPiece(s.thinking, d.Text)
	}
}

// reset drops the text: the model begins its answer again, or another model does.
func (s *streamed) reset() { s.text, s.thinking = s.text[:0], s.thinking[:0] }

// partial returns the text so far, nil if there is none.
func (s *streamed) partial() *agent.Partial {
	if len(s.text)+len(s.thinking) == 0 {
		return nil
	}
	return &agent.Partial{Text: string(s.text), Thinking: string(s.thinking)}
}

// stopped returns the event of a model call that was cancelled, or whose process is closing. Without a text it returns
// the cause: the outcome is not known.
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
