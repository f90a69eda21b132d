package cli

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/view"
)

// progress shows the progress of a running call, on a terminal only.
func (f *follower) progress(e tenon.Event) {
	p, err := view.Try[tenon.Progress](e)
	if err != nil {
		return
	}
	name := e.Step
	if records := view.Of(f.calls[e.Step]).Calls(); len(records) == 1 {
		name = callName(records[0])
	}
	f.transient("○ " + name + " " + progressText(p))
}

// transient shows a line that the next output replaces.
func (f *follower) transient(s string) {
	if !f.a.errTTY || f.a.quiet || f.open || f.thought || f.asks.isBusy() {
		return
	}
	f.status = true
	f.a.control(clearLine)
	fmt.Fprint(f.a.err, f.a.errStyle(dim, shorten(s, f.a.width()-1)))
}

func (f *follower) clear() {
	if f.status {
		f.status = false
		f.a.control(clearLine)
	}
}

func progressText(p tenon.Progress) string {
	s := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		s += fmt.Sprintf("/%g", p.Total)
	}
	return strings.TrimSpace(s + " " + safeLine(p.Message))
}

// argsShown bounds the columns of a call's arguments in its line, argsListed in a list.
const (
	argsShown  = 120
	argsListed = 400
)

// reasonShown bounds the columns of the reason why a call was denied. A person wrote it to be read.
const reasonShown = 2000

// callLine formats a tool call that ended.
func (a *app) callLine(r view.Call) string {
	mark, outcome := green, "ok"
	switch {
	case r.Outcome == view.CallDone && r.Success && r.Misfit != "":
		mark, outcome = yellow, "ok, but the result does not fit the output schema: "+r.Misfit
	case r.Outcome == view.CallDone && r.Success && declinedQuestion(r) != "":
		mark, outcome = yellow, "ok, but "+declinedQuestion(r)
	case r.Outcome == view.CallDone && r.Success:
	case r.Outcome == view.CallDone:
		mark, outcome = red, "error: "+r.Error
	case r.Outcome == view.CallOpen:
		mark, outcome = yellow, "stopped"
	case r.Outcome == view.CallInterrupted:
		mark, outcome = yellow, r.Error
	default:
		mark, outcome = red, r.Outcome+": "+r.Error
		if r.Outcome != view.CallFailed {
			mark = yellow
		}
	}
	parts := []string{a.errStyle(mark, "●"), callName(r), a.errStyle(dim, argShort(r.Args, argsShown))}
	if r.Outcome != view.CallDenied && r.Outcome != view.CallInvalid && r.Outcome != view.CallOpen {
		parts = append(parts, a.errStyle(dim, took(r.Millis)))
	}
	if r.Cached {
		parts = append(parts, a.errStyle(dim, "(cached)"))
	}
	if r.Attempts > 1 {
		parts = append(parts, a.errStyle(dim, "("+plural(r.Attempts, "attempt")+")"))
	}
	most := 160
	if r.Outcome == view.CallDenied {
		most = reasonShown
	}
	return strings.Join(append(parts, a.errStyle(mark, shorten(safeLine(outcome), most))), " ")
}

// declinedQuestion describes the last question of the server if it got no answer, or returns "". Then the result tells
// little: many servers report success.
func declinedQuestion(r view.Call) string {
	if len(r.Questions) == 0 {
		return ""
	}
	q := r.Questions[len(r.Questions)-1]
	text := map[string]string{view.AskedDeclined: "the question of the server was not answered",
		view.AskedExpired: "the question of the server has expired"}[q.Outcome]
	if text != "" && q.Reason != "" {
		text += ": " + q.Reason
	}
	return text
}

// callName returns server.tool, or the name that the model used if there is no such tool.
func callName(r view.Call) string {
	if r.Server == "" {
		return safeLine(r.Name)
	}
	return safeLine(r.Server + "." + r.Remote)
}
