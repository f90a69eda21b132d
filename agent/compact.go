package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Compaction is the block `compaction` of an agent: how tenon shortens a long conversation to fit the model's
// context. The journal keeps the whole conversation; only the model sees less.
type Compaction struct {
	// If a request has this many tokens, a summary replaces the older part of the conversation. 0: `context_tokens` of
	// the model less its `max_tokens`, and without `context_tokens` only if the model reports that its context is full.
	At int `yaml:"at_tokens" min:"0" default:"0" json:"at,omitempty"`
	// Number of model requests at the end of the conversation that are kept unchanged, with their tool results.
	Keep int `yaml:"keep_turns" min:"1" default:"3" json:"keep,omitempty"`
	// If a request has this many tokens, the results of older tool calls are left out. 0: never.
	ClearAt int `yaml:"clear_results_at_tokens" min:"0" default:"0" json:"clear_at,omitempty"`
	// Number of model requests at the end of the conversation whose tool results are always kept.
	KeepResults int `yaml:"keep_results" min:"1" default:"3" json:"keep_results,omitempty"`
	// Entry of `models` that writes the summary.
	Model string `yaml:"model" default:"the agent's" json:"model,omitempty"`
	// Instructions for the summary. They replace the built-in text.
	Prompt string `yaml:"prompt" default:"built-in text" json:"prompt,omitempty"`
}

// WithDefaults returns a copy with defaults for absent values.
func (c Compaction) WithDefaults() Compaction {
	c.Keep = cmp.Or(c.Keep, 3)
	c.KeepResults = cmp.Or(c.KeepResults, 3)
	return c
}

// EventCompacted records that the model sees a shorter conversation from now on; data: Compacted.
const EventCompacted = "compacted"

// CommandCompact shortens the conversation; data: CompactCommand. Its result is an EventCompacted or an EventFailed.
const CommandCompact = "compact"

// TaskCompact is the [Spec.Task] of a run that only shortens its session's conversation.
const TaskCompact = "compact"

// Reasons of a compaction.
const (
	CompactSize  = "size"         // it reached the configured size
	CompactFull  = "context_full" // the conversation did not fit the model's context
	CompactAsked = "asked"        // a person asked for it
)

// CompactCommand is the data of a [CommandCompact]. Either a summary replaces the first Cut messages, or the tool
// results in the first Clear messages are left out.
type CompactCommand struct {
	Why    string `json:"why"`
	Cut    int    `json:"cut,omitempty"`
	Clear  int    `json:"clear,omitempty"`
	Model  string `json:"model,omitempty"`
	Prompt string `json:"prompt,omitempty"`

	Budgets Budgets `json:"budgets,omitzero"` // budgets that the summary is charged to
}

// Compacted is the data of an [EventCompacted].
type Compacted struct {
	Why     string       `json:"why"`
	Cut     int          `json:"cut,omitempty"`     // number of messages that Summary replaces
	Summary string       `json:"summary,omitempty"` // of the first Cut messages
	Clear   int          `json:"clear,omitempty"`   // number of messages whose tool results are left out
	Usage   *tenon.Usage `json:"usage,omitempty"`   // tokens used for the summary
	Cost    *tenon.USD   `json:"cost,omitempty"`
}

// shortResult is the size in bytes up to which a tool result is always kept.
const shortResult = 400

// add appends messages to the conversation.
func (s *State) add(m ...*tenon.Message) {
	s.messages = append(s.messages, m...)
	s.history = append(s.history, m...)
}

// History returns the whole conversation, as it was before any compaction. Every
// tool call in it has a result.
func (s *State) History() []*tenon.Message { return s.whole(s.history) }

// Len returns the number of messages of [State.History], without results of calls that have not ended.
func (s *State) Len() int { return len(s.history) }

// compactStep returns the step id of this turn's compaction.
func (s *State) compactStep() string { return "c" + strconv.Itoa(s.turn) }

// nextCompact returns the compaction that is due before the next model call.
func (s *State) nextCompact() (tenon.Command, bool) {
	c := CompactCommand{Model: s.spec.Compaction.Model, Prompt: s.spec.Compaction.Prompt, Budgets: s.spec.Budgets}
	keep, rules := s.spec.Compaction.Keep, s.spec.Compaction
	switch {
	case s.full:
		c.Why, keep = CompactFull, 1
	case s.spec.Task == TaskCompact:
		c.Why = CompactAsked
	case s.compacted == s.turn: // a compaction that did not help enough is not repeated
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
	c.Model = cmp.Or(c.Model, s.spec.Model)
	return tenon.Command{Step: s.compactStep(), Kind: CommandCompact, Idempotent: true, Data: mustJSON(c),
		Local: s.messages[:c.Cut:c.Cut]}, true
}

// boundary returns the index of the message at which the last n model requests begin. The context can be cut there,
// because no call is separated from its result. It returns 0 if there are no earlier requests.
func (s *State) boundary(n int) int {
	for i := len(s.messages) - 1; i > 0; i-- {
		if s.messages[i].Role != tenon.RoleAssistant {
			continue
		}
		if n--; n > 0 {
			continue
		}
		for i > 0 && (s.messages[i-1].Role == tenon.RoleUser || s.messages[i-1].Role == tenon.RoleSystem) {
			i-- // the question belongs to its answer
		}
		return i
	}
	return 0
}

// cut returns the number of messages that a summary would replace, or 0 if a summary would not help.
func (s *State) cut(keep int) int {
	n := s.boundary(keep)
	if s.spec.Task == TaskCompact {
		n = len(s.messages) // a person asked for it, and no call is under way
	}
	if n < 2 {
		return 0 // only a question or an earlier summary
	}
	return n
}

// clearable returns the index before which tool results can be left out, or 0 if no long result is left.
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

// applyCompact applies an event of a compaction.
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
		if s.full || s.spec.Task == TaskCompact { // the run cannot continue without it
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
			r.Content = []tenon.Content{tenon.Text(fmt.Sprintf("[left out to save room: a result of %d bytes; call "+
				"the tool again if you need it]", size(p.Result)))}
			short.Parts[j].Result = &r
		}
		messages[i] = short
	}
	s.messages = messages
}

// summarize replaces the first messages by the summary. It keeps a question that is not answered yet word for word.
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

// textOf returns the text of the user's messages.
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

// tokensNow estimates the tokens of the next request: the model's last count, plus the bytes added since, at the
// measured number of bytes per token.
func (s *State) tokensNow() int {
	per := cmp.Or(s.perToken, firstPerToken)
	return s.known + bytesOf(s.messages[min(s.knownAt, len(s.messages)):])*1000/per
}

// Thousandths of a byte per token: the first estimate, the minimum and the maximum.
const (
	firstPerToken = 4000
	leastPerToken = 1500
	mostPerToken  = 8000
)

// calibrate adjusts the estimated bytes per token to the model's count of a request with input tokens and before
// messages. It uses only growth since the last count, because the first count includes tools and instructions. It
// ignores small samples. It uses integers, so the result is the same on every machine.
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
	s.perToken = cmp.Or(s.perToken, firstPerToken)
	s.perToken = (s.perToken*7 + sample*3) / 10
}

// bytesOf returns the number of bytes of messages that count as text.
func bytesOf(messages []*tenon.Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Data)/100 // images cost few tokens for their size
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

// size returns the number of bytes of a result that count as text.
func size(r *tenon.ToolResult) int {
	n := 0
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data)/100
	}
	return n
}
