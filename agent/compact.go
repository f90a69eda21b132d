package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Compaction is the block `compaction` of an agent: how its conversation is made
// to fit the model's context. What was said stays in the journal and can be read;
// only the model sees less.
type Compaction struct {
	// Tokens of a request from which on the older part of the conversation is replaced by a summary; 0: only where the model says that its context is full.
	At int `yaml:"at_tokens" min:"0" default:"0" json:"at,omitempty"`
	// Model requests at the end of the conversation that stay as they are, with their tool results.
	Keep int `yaml:"keep_turns" min:"1" default:"3" json:"keep,omitempty"`
	// Tokens of a request from which on the results of older tool calls are left out; 0: never.
	ClearAt int `yaml:"clear_results_at_tokens" min:"0" default:"0" json:"clear_at,omitempty"`
	// Model requests at the end of the conversation whose tool results are never left out.
	KeepResults int `yaml:"keep_results" min:"1" default:"3" json:"keep_results,omitempty"`
	// Entry of `models` that writes the summary.
	Model string `yaml:"model" default:"the agent's" json:"model,omitempty"`
	// What the summary is to hold, in place of the built-in text.
	Prompt string `yaml:"prompt" default:"built-in text" json:"prompt,omitempty"`
}

// WithDefaults returns the block with the built-in values in the place of what it
// does not say.
func (c Compaction) WithDefaults() Compaction {
	if c.Keep == 0 {
		c.Keep = 3
	}
	if c.KeepResults == 0 {
		c.KeepResults = 3
	}
	return c
}

// EventCompacted says that the model sees less of the conversation from here on;
// data: Compacted.
const EventCompacted = "compacted"

// CommandCompact wants the conversation made shorter; data: CompactCommand. It
// leads to an EventCompacted or an EventFailed.
const CommandCompact = "compact"

// TaskCompact is the task of a run that only makes its session's conversation
// shorter: [Spec.Task].
const TaskCompact = "compact"

// Why a conversation was made shorter.
const (
	CompactSize  = "size"         // it had become as long as the rules say
	CompactFull  = "context_full" // the model could not take it
	CompactAsked = "asked"        // a person wanted it
)

// CompactCommand says what is to be made shorter: the first Cut messages of the
// context become a summary, or the results in the first Clear ones are left out.
type CompactCommand struct {
	Why    string `json:"why"`
	Cut    int    `json:"cut,omitempty"`
	Clear  int    `json:"clear,omitempty"`
	Model  string `json:"model,omitempty"`
	Prompt string `json:"prompt,omitempty"`

	Budgets Budgets `json:"budgets,omitzero"` // that the summary is charged to
}

// Compacted is the data of an [EventCompacted].
type Compacted struct {
	Why     string       `json:"why"`
	Cut     int          `json:"cut,omitempty"`     // messages that Summary stands for
	Summary string       `json:"summary,omitempty"` // of a cut
	Clear   int          `json:"clear,omitempty"`   // messages without their tool results
	Usage   *tenon.Usage `json:"usage,omitempty"`   // of the request for the summary
	Cost    *tenon.USD   `json:"cost,omitempty"`
}

// shortResult is the size in bytes up to which a tool's result is not worth
// leaving out.
const shortResult = 400

// add puts messages at the end of the conversation.
func (s *State) add(m ...*tenon.Message) {
	s.messages = append(s.messages, m...)
	s.history = append(s.history, m...)
}

// History returns the whole conversation, as it was before any compaction. Every
// tool call in it has a result.
func (s *State) History() []*tenon.Message { return s.whole(s.history) }

// Len is how many messages of [State.History] there are without the results that
// are still to come.
func (s *State) Len() int { return len(s.history) }

// compactStep is the step at which the conversation of this turn is made shorter.
func (s *State) compactStep() string { return "c" + strconv.Itoa(s.turn) }

// nextCompact names the compaction that is due before the next model call.
func (s *State) nextCompact() (tenon.Command, bool) {
	c := CompactCommand{Model: s.spec.Compaction.Model, Prompt: s.spec.Compaction.Prompt, Budgets: s.spec.Budgets}
	keep, rules := s.spec.Compaction.Keep, s.spec.Compaction
	switch {
	case s.full:
		c.Why, keep = CompactFull, 1
	case s.spec.Task == TaskCompact:
		c.Why = CompactAsked
	case s.compacted == s.turn: // one that did not help enough is not tried again
		return tenon.Command{}, false
	case rules.ClearAt > 0 && s.tokensNow() >= rules.ClearAt && s.clearable(rules.KeepResults) > 0:
		c.Why, c.Clear = CompactSize, s.clearable(rules.KeepResults)
	case rules.At > 0 && s.tokensNow() >= rules.At:
		c.Why = CompactSize
	default:
		return tenon.Command{}, false
	}
	if c.Clear == 0 {
		if c.Cut = s.cut(keep); c.Cut == 0 {
			return tenon.Command{}, false
		}
	}
	if c.Model == "" {
		c.Model = s.spec.Model
	}
	return tenon.Command{Step: s.compactStep(), Kind: CommandCompact, Idempotent: true, Data: mustJSON(c), Local: s.messages[:c.Cut:c.Cut]}, true
}

// boundary returns the index at which the last n requests to the model begin: a
// message before which the context can be cut, because no call is parted there
// from its result. 0 means that there are no more requests than those.
func (s *State) boundary(n int) int {
	for i := len(s.messages) - 1; i > 0; i-- {
		if s.messages[i].Role != tenon.RoleAssistant {
			continue
		}
		if n--; n > 0 {
			continue
		}
		for i > 0 && s.messages[i-1].Role == tenon.RoleUser {
			i-- // the question belongs to its answer
		}
		return i
	}
	return 0
}

// cut is how many messages a summary would stand for, 0 where it is not worth it.
func (s *State) cut(keep int) int {
	n := s.boundary(keep)
	if s.spec.Task == TaskCompact {
		n = len(s.messages) // a person wants it, and nothing is under way
	}
	if n < 2 {
		return 0 // a question alone, or the summary of before
	}
	return n
}

// clearable returns the index before which tool results can be left out, 0 where
// none is left that is worth it.
func (s *State) clearable(keep int) int {
	end := s.boundary(keep)
	for _, m := range s.messages[:end] {
		for _, p := range m.Parts {
			if p.Result != nil && size(p.Result) > shortResult {
				return end
			}
		}
	}
	return 0
}

// applyCompact takes what happened to a compaction.
func (s *State) applyCompact(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventStarted:
		s.asked = true
		return nil
	case tenon.EventInterrupted:
		s.asked = false
		return nil
	case EventFailed:
		var f Failure
		if err := decode(e, &f); err != nil {
			return err
		}
		s.asked, s.compacted = false, s.turn
		if s.full || s.spec.Task == TaskCompact { // without it the run cannot go on
			s.stop, s.failed = tenon.StopError, f.Error
			if s.full {
				s.stop = tenon.StopContextFull
			}
		}
		return nil
	case EventCompacted:
	default:
		return outOfPlace(e)
	}
	var c Compacted
	if err := decode(e, &c); err != nil {
		return err
	}
	if c.Cut < 0 || c.Clear < 0 || c.Cut > len(s.messages) || c.Clear > len(s.messages) || len(s.calls) > 0 {
		return outOfPlace(e)
	}
	s.asked, s.compacted, s.full = false, s.turn, false
	s.usage.Add(c.Usage)
	if c.Cost != nil {
		s.cost += *c.Cost
	}
	if c.Clear > 0 {
		s.clear(c.Clear)
	}
	if c.Cut > 0 {
		s.summarize(c)
	}
	s.known, s.knownAt = 0, 0
	return nil
}

// clear leaves the longer tool results out of the first n messages.
func (s *State) clear(n int) {
	messages := append([]*tenon.Message(nil), s.messages...)
	for i, m := range messages[:n] {
		if m.Role != tenon.RoleTool {
			continue
		}
		short := &tenon.Message{Role: m.Role, Parts: append([]tenon.Part(nil), m.Parts...)}
		for j, p := range short.Parts {
			if p.Result == nil || size(p.Result) <= shortResult {
				continue
			}
			r := *p.Result
			r.Content = []tenon.Content{tenon.Text(fmt.Sprintf("[left out to save room: a result of %d bytes; call the tool again if you need it]", size(p.Result)))}
			short.Parts[j].Result = &r
		}
		messages[i] = short
	}
	s.messages = messages
}

// summarize puts the summary in the place of the first messages. A question that
// is not answered yet stays word for word.
func (s *State) summarize(c Compacted) {
	text := "This is a summary of our conversation so far:\n\n" + c.Summary
	rest := s.messages[c.Cut:]
	if s.spec.Task != TaskCompact && !strings.Contains(textOf(rest), s.spec.Question) {
		text += "\n\nMy question was:\n\n" + s.spec.Question
	}
	s.messages = append([]*tenon.Message{tenon.UserMessage(text)}, rest...)
	if s.spec.Task == TaskCompact {
		s.answer = c.Summary
	}
}

// textOf is what the user said in messages.
func textOf(messages []*tenon.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if m.Role == tenon.RoleUser {
			b.WriteString(m.Text())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// tokensNow estimates the tokens of the next request: what the model counted
// last, and so many bytes a token for what came since as it counted before.
func (s *State) tokensNow() int {
	per := s.perToken
	if per == 0 {
		per = firstPerToken
	}
	return s.known + bytesOf(s.messages[min(s.knownAt, len(s.messages)):])*1000/per
}

// Thousandths of a byte that a token stands for: at first, and at least and at most.
const (
	firstPerToken = 4000
	leastPerToken = 1500
	mostPerToken  = 8000
)

// calibrate learns from what the model counted for a request how many bytes a token
// stands for; before is how many messages the request had. What was not counted before
// cannot be told from tools and instructions, and a few tokens say little. The
// arithmetic is of whole numbers, so that every machine comes to the same.
func (s *State) calibrate(input, before int) {
	counted := input - s.known
	if s.known == 0 || s.knownAt > before || counted < 50 {
		return
	}
	bytes := bytesOf(s.messages[s.knownAt:before])
	if bytes < 200 {
		return
	}
	sample := min(max(bytes*1000/counted, leastPerToken), mostPerToken)
	if s.perToken == 0 {
		s.perToken = firstPerToken
	}
	s.perToken = (s.perToken*7 + sample*3) / 10
}

// bytesOf is how many bytes of messages count as text.
func bytesOf(messages []*tenon.Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Data)/100 // a picture costs little of its size
			if p.Call != nil {
				n += len(p.Call.Name) + len(p.Call.Arguments)
			}
			if p.Result != nil {
				n += size(p.Result)
			}
		}
	}
	return n
}

// size is how many bytes of a result count as text.
func size(r *tenon.ToolResult) int {
	n := 0
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data)/100
	}
	return n
}
