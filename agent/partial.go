package agent

import (
	"strings"

	"github.com/tenonhq/tenon"
)

// Partial is the text that a model had written when its call was stopped or failed. It is the data of a
// [tenon.EventInterrupted] of a model call, and part of its [Failure]. The text is bounded by [MaxPartial].
//
// If the run continues, the call is repeated with the same request, because most models refuse to continue an answer
// that they have begun. If the run ends instead, the text becomes an assistant message with Partial set: the next
// question of the conversation is asked with it. Reasoning is kept for persons only, since a provider accepts it only
// with a signature, which follows at its end.
type Partial struct {
	Text     string `json:"text,omitempty"`
	Thinking string `json:"thinking,omitempty"`
}

// MaxPartial bounds a text of a [Partial] in bytes.
const MaxPartial = 1 << 20

// againText asks for an answer whose beginning is the last message.
const againText = "Your answer was cut off. Give the whole answer."

// keepPartial remembers the text of a stopped or failed model call, until the model is asked again or the run ends.
func (s *State) keepPartial(p *Partial) {
	s.partial = ""
	if p != nil && strings.TrimSpace(p.Text) != "" {
		s.partial = p.Text
	}
}

// stopPartial makes the text of a stopped model call a message, because the run has ended.
func (s *State) stopPartial(d tenon.DoneData) {
	if s.partial == "" || d.State == tenon.RunCompleted || s.spec.Task != "" || len(s.calls) > 0 {
		return
	}
	m := tenon.AssistantMessage(s.partial)
	m.Partial, s.partial = true, ""
	s.add(m)
}
