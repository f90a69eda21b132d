package agent

import (
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
)

// Budgets is the block `budgets` of tenon.yaml: what runs may use together. A
// budget is asked before each step; a step that is under way is never stopped.
type Budgets struct {
	// What the runs of one session may use together.
	Session Budget `yaml:"session" json:"session,omitzero"`
	// What all runs of one day may use together; a day begins at midnight UTC.
	Day Budget `yaml:"day" json:"day,omitzero"`
	// What the runs of one principal may use on one day.
	Principal Budget `yaml:"principal" json:"principal,omitzero"`
}

// Budget bounds what several runs use together. A zero field is no bound.
type Budget struct {
	// Model requests.
	Turns int `yaml:"turns" min:"0" default:"0" json:"turns,omitempty"`
	// Tool calls that a model proposed and that no rule refused.
	ToolCalls int `yaml:"tool_calls" min:"0" default:"0" json:"tool_calls,omitempty"`
	// Tokens of all model requests, read and written.
	Tokens int `yaml:"tokens" min:"0" default:"0" json:"tokens,omitempty"`
	// US dollars for all model requests.
	Cost float64 `yaml:"cost" min:"0" default:"0" json:"cost,omitempty"`
	// Time of model requests and tool calls together, one after another or not.
	Time time.Duration `yaml:"time" default:"no limit" json:"time,omitempty"`
}

func (b Budgets) isZero() bool { return b == Budgets{} }

// nextReserve asks the budgets about the turn's model call, nil where that was done.
func (s *State) nextReserve() []tenon.Command {
	if s.reserved == s.turn || s.spec.Budgets.isZero() {
		return nil
	}
	kind := CommandDecide
	if s.queued == s.turn {
		kind = CommandReserve
	}
	return []tenon.Command{{Step: s.modelStep(), Kind: kind, Idempotent: true, Local: s.Prompt(),
		Data: mustJSON(DecideCommand{Budgets: s.spec.Budgets, Beyond: s.beyond})}}
}

// applyReserved takes the word of the budgets about the turn's model call.
func (s *State) applyReserved(e tenon.Event) error {
	var r Reserved
	if err := decode(e, &r); err != nil {
		return err
	}
	if e.Step != s.modelStep() || len(s.calls) > 0 {
		return outOfPlace(e)
	}
	s.asked = false
	if r.Queued {
		s.queued = s.turn
		return nil
	}
	if s.over = r.Refused; s.over == nil {
		s.reserved = s.turn
	}
	return nil
}

// tally counts calls by the tool's identity.
type tally struct {
	run, session map[string]int
}

// count1 counts a call that a rule let pass, and settles it where that is one too
// many.
func (s *State) count1(c *call) {
	d := c.decision
	if d.Refused != nil {
		s.over = d.Refused
	}
	if c.status == settled {
		return
	}
	if s.called.run == nil {
		s.called.run = map[string]int{}
	}
	if s.called.session == nil {
		s.called.session = map[string]int{}
	}
	key := grantKey(d.Server, d.Remote)
	switch {
	case s.tooDeep(c):
		c.settle(tooDeepResult(s.spec.MaxDepth))
	case d.MaxCalls > 0 && s.called.run[key] >= d.MaxCalls:
		c.settle(tooMany(c.tool.Name, d.MaxCalls, "run"))
	case d.MaxSession > 0 && s.called.session[key] >= d.MaxSession:
		c.settle(tooMany(c.tool.Name, d.MaxSession, "session"))
	default:
		s.called.run[key]++
		s.called.session[key]++
	}
}

func tooDeepResult(most int) *tenon.Result {
	return tenon.ErrorResult(fmt.Sprintf("not run: agents may call one another %d deep; do the work yourself, or answer with what you have", most))
}

func tooMany(name string, most int, of string) *tenon.Result {
	calls := "calls"
	if most == 1 {
		calls = "call"
	}
	return tenon.ErrorResult(fmt.Sprintf("not run: limit of %d %s reached for tool '%s' in this %s; go on without it", most, calls, name, of))
}
