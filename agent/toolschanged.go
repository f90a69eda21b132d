package agent

import (
	"slices"

	"github.com/tenonhq/tenon"
)

// EventTools records that the model sees other tools from this turn on; data: ToolsChanged. Its step is the turn's
// model call, and it precedes the model's answer.
const EventTools = "tools"

// ToolsChanged is the data of an [EventTools]. The names are exposed names.
type ToolsChanged struct {
	Tools   string   `json:"tools"` // digest of the new tool snapshot
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Withheld lists the servers with removed tools whose present tools wait until a person accepts them.
	Withheld []WithheldTools `json:"withheld,omitempty"`
}

// WithheldTools says why tools of a server are not offered.
type WithheldTools struct {
	Server string `json:"server"`
	Reason string `json:"reason"` // a sentence for people, with the command that accepts the tools
}

// The values of [Spec.Excluded] name who excluded tools from a run that began without them. Only a run from which
// nobody excluded them receives tools that servers add later.
const (
	ExcludedByQuestion = "question"
	ExcludedByAgent    = "agent"
	ExcludedByModel    = "model"  // its configuration says that requests to it contain no tools
	ExcludedByNobody   = "nobody" // there were no tools
)

// MayAddTools reports whether tools that servers add during the run belong into its requests.
func (p *Prompt) MayAddTools() bool {
	return !p.Selected && (p.Tools != "" || p.Excluded == ExcludedByNobody)
}

// maxRemoved bounds the removed tools that a run remembers.
const maxRemoved = 1000

// applyTools applies an [EventTools].
func (s *State) applyTools(e tenon.Event) error {
	var c ToolsChanged
	if err := decode(e, &c); err != nil {
		return err
	}
	if e.Step != s.modelStep() || !s.asked || len(s.calls) > 0 {
		return outOfPlace(e)
	}
	s.spec.Tools = c.Tools
	s.found = minus(s.found, c.Removed)
	s.removed = append(minus(s.removed, c.Added), c.Removed...)
	if over := len(s.removed) - maxRemoved; over > 0 {
		s.removed = s.removed[over:]
	}
	return nil
}

// minus returns a copy of a list without some of its names.
func minus(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return slices.Contains(names, n) })
}

// WithTools returns a copy of a prompt with the changed tools. A choice of a removed tool becomes auto.
func (p *Prompt) WithTools(c *ToolsChanged) *Prompt {
	now := *p
	now.Tools, now.Found = c.Tools, minus(p.Found, c.Removed)
	if choice := tenon.ParseChoice(p.ToolChoice); choice.Names != nil {
		now.ToolChoice = choice.Without(c.Removed).String()
	}
	return &now
}
