package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
)

// Budgets is the block `budgets` of tenon.yaml: shared limits of several runs. tenon checks the budgets before each
// step; it never stops a step that has begun.
type Budgets struct {
	// Limits of all runs of one session together.
	Session Budget `yaml:"session" json:"session,omitzero"`
	// Limits of all runs of one day together. A day begins at midnight UTC.
	Day Budget `yaml:"day" json:"day,omitzero"`
	// Limits of all runs of one principal on one day.
	Principal Budget `yaml:"principal" json:"principal,omitzero"`
}

// Budget limits several runs together. A zero field sets no limit.
type Budget struct {
	// Model requests.
	Turns int `yaml:"turns" min:"0" default:"0" json:"turns,omitempty"`
	// Tool calls that a model proposes, without the calls that a rule denies.
	ToolCalls int `yaml:"tool_calls" min:"0" default:"0" json:"tool_calls,omitempty"`
	// Input and output tokens of all model requests.
	Tokens int `yaml:"tokens" min:"0" default:"0" json:"tokens,omitempty"`
	// Cost of all model requests in US dollars.
	Cost float64 `yaml:"cost" min:"0" default:"0" json:"cost,omitempty"`
	// Total time of model requests and tool calls. Parallel calls count separately.
	Time time.Duration `yaml:"time" default:"no limit" json:"time,omitempty"`
}

func (b Budgets) isZero() bool { return b == Budgets{} }

// nextReserve returns the command that reserves the turn's model call in the budgets, or nil if none is needed.
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

// applyReserved applies the answer of the budgets about the turn's model call.
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

// count1 counts a call that the rules allow, and refuses it if it exceeds a limit.
func (s *State) count1(c *call) {
	d := c.decision
	s.over = cmp.Or(d.Refused, s.over)
	if c.status == settled {
		return
	}
	if s.called.run == nil {
		s.called.run = map[string]int{}
	}
	if s.called.session == nil {
		s.called.session = map[string]int{}
	}
	key := d.countKey()
	switch {
	case s.tooDeep(c):
		c.settle(tooDeepResult(s.spec.MaxDepth))
	case d.MaxCalls > 0 && d.counted(s.called.run) >= d.MaxCalls:
		c.settle(tooMany(c.tool.Name, d.MaxCalls, "run"))
	case d.MaxSession > 0 && d.counted(s.called.session) >= d.MaxSession:
		c.settle(tooMany(c.tool.Name, d.MaxSession, "session"))
	default:
		s.called.run[key]++
		s.called.session[key]++
	}
}

// countKey returns the key under which calls of a tool are counted. It contains the server's identity, which another
// server cannot assume.
func (d *Decision) countKey() string { return grantKey(cmp.Or(d.Identity, d.Server), d.Remote) }

// counted returns the number of calls of the tool so far. Sessions of earlier releases counted them by the server's
// name.
func (d *Decision) counted(calls map[string]int) int {
	n := calls[d.countKey()]
	if d.Identity != "" {
		n += calls[grantKey(d.Server, d.Remote)]
	}
	return n
}

func tooDeepResult(most int) *tenon.Result {
	return tenon.ErrorResult(fmt.Sprintf("not run: agents may call one another %d deep; do the work yourself, or "+
		"answer with what you have", most))
}

func tooMany(name string, most int, of string) *tenon.Result {
	calls := "calls"
	if most == 1 {
		calls = "call"
	}
	return tenon.ErrorResult(fmt.Sprintf("not run: limit of %d %s reached for tool '%s' in this %s; go on without it",
		most, calls, name, of))
}
