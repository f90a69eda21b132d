package script

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// player streams one step.
type player struct {
	ctx   context.Context
	step  *Step
	yield func(tenon.Delta, error) bool
	err   error
}

// play streams the deltas. It returns true if the answer should follow.
func (p *player) play() bool {
	s := p.step
	if !p.wait(s.Delay) {
		return false
	}
	if s.Partial != "" {
		if !p.stream(tenon.DeltaText, s.Partial) ||
			!p.yield(tenon.Delta{Kind: tenon.DeltaReset, Text: "the connection broke (scripted)"}, nil) {
			return false
		}
	}
	if !p.stream(tenon.DeltaThinking, s.Thinking) || !p.stream(tenon.DeltaText, s.Text) {
		return false
	}
	for _, c := range s.Calls {
		if !p.yield(tenon.Delta{Kind: tenon.DeltaCall, Text: c.Name}, nil) {
			return false
		}
	}
	return true
}

func (p *player) stream(kind, text string) bool {
	for len(text) > 0 {
		n := p.piece(text)
		if !p.yield(tenon.Delta{Kind: kind, Text: text[:n]}, nil) {
			return false
		}
		text = text[n:]
		if text != "" && !p.wait(p.step.ChunkDelay) {
			return false
		}
	}
	return p.wait(0)
}

// piece returns the length in bytes of the first piece of text: a word with the following space, or
// a number of characters.
func (p *player) piece(text string) int {
	if p.step.Chunk == 0 {
		if i := strings.IndexByte(text, ' '); i >= 0 {
			return i + 1
		}
		return len(text)
	}
	n := 0
	for i := 0; i < p.step.Chunk && n < len(text); i++ {
		_, size := utf8.DecodeRuneInString(text[n:])
		n += size
	}
	return n
}

func (p *player) wait(d time.Duration) bool {
	if d > 0 && p.ctx.Err() == nil {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
		}
	}
	switch err := p.ctx.Err(); {
	case err == nil:
		return true
	case errors.Is(err, context.DeadlineExceeded):
		p.err = tenon.Errorf(tenon.CodeTimeout, "script: the deadline passed: %w", err)
	default:
		p.err = tenon.Errorf(tenon.CodeCancelled, "script: cancelled: %w", err)
	}
	return false
}
