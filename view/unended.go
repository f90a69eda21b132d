package view

import (
	"cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// unended finds the reasons for calls that no event ends. The core ends such a call itself and gives the model a
// reason. A person sees the same reason.
type unended struct {
	open  []*Call // proposed since the model's last answer
	ended []*Call // calls that had not ended when the run ended
	most  int     // limit of the run's calls; if 0, there is none
	made  int     // number of calls since the limits were reset
	stop  tenon.StopReason
	final bool           // a limit was reached, and the model gives its last answer
	count map[string]int // allowed calls by tool
}

func (u *unended) propose(c *Call) {
	u.made++
	c.number = u.made
	u.open = append(u.open, c)
}

func (u *unended) apply(e tenon.Event, data any) {
	switch d := data.(type) {
	case *tenon.StartedData:
		if d.Kind == agent.CommandModel || d.Kind == agent.CommandFinal {
			u.final = d.Kind == agent.CommandFinal
			u.close()
		}
	case *agent.Answered:
		u.close()
		u.stop = d.Response.Stop
	case *agent.Decision:
		u.decided(e.Step, d)
	case *agent.Ruling:
		if tenon.ParseStep(e.Step).Call == "" { // a person allowed the run to continue past its limit
			u.made = 0
		}
	case *agent.Outcome:
		if d.Spent != nil {
			u.made += d.Spent.ToolCalls
		}
	case *tenon.DoneData:
		for _, c := range u.open {
			if c.Outcome == CallOpen {
				c.Outcome = CallDenied
				if c.Attempts > 0 {
					c.Outcome = CallInterrupted
				}
				if c.Error = u.passed(c); c.Error == "" || c.Attempts > 0 {
					c.Error = agent.EndedText(c.Attempts > 0, c.asked, d.Error)
				}
			}
		}
		u.ended, u.open = u.open, nil
	}
	switch e.Kind {
	case tenon.EventRun:
		u.most = runLimit(e)
	case tenon.EventRetry:
		u.open, u.made = u.ended, 0
		for _, c := range u.open {
			if c.Outcome == CallInterrupted || c.Outcome == CallDenied && c.Verdict != tenon.Deny {
				c.Outcome, c.Error = CallOpen, ""
			}
		}
	}
}

// runLimit returns the limit of a run's calls.
func runLimit(e tenon.Event) int {
	_, spec, err := Spec[struct {
		Most int `json:"tool_calls"`
	}](e)
	if err != nil {
		return 0
	}
	return spec.Most
}

// decided counts an allowed call of a tool. It does not count a call beyond the limit of its tool, because that call is
// not made.
func (u *unended) decided(step string, d *agent.Decision) {
	for _, c := range u.open {
		if c.Step != step || d.Verdict == tenon.Deny {
			continue
		}
		key := d.Identity + "/" + d.Server + "/" + d.Remote
		if u.count == nil {
			u.count = map[string]int{}
		}
		switch {
		case d.MaxCalls > 0 && u.count[key] >= d.MaxCalls:
			c.limit = agent.TooManyText(c.Name, d.MaxCalls, "run")
		case d.MaxSession > 0: // the limit also counts calls of earlier runs
			c.session = agent.TooManyText(c.Name, d.MaxSession, "session")
			u.count[key]++
		default:
			u.count[key]++
		}
	}
}

// close ends the calls that were not begun when the model is asked again.
func (u *unended) close() {
	for _, c := range u.open {
		if c.Outcome == CallOpen && c.Attempts == 0 {
			c.Outcome, c.Error = CallDenied, u.passed(c)
			c.Error = cmp.Or(c.Error, agent.LimitText)
		}
	}
	u.open = nil
}

// passed returns the reason why a call was not made. It returns "" if the call was only not made because the run ended.
func (u *unended) passed(c *Call) string {
	switch {
	case u.stop != "" && !agent.IsWhole(u.stop):
		return agent.CutOffText(u.stop)
	case u.most > 0 && c.number > u.most && c.Verdict == "":
		return agent.CallLimitText
	case c.limit != "" && c.Verdict == tenon.Allow:
		return c.limit
	case u.final:
		return agent.LimitText
	}
	return c.session
}
