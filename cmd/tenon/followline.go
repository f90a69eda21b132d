package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// progress shows a notice of a running call, on a terminal only.
func (f *follower) progress(e tenon.Event) {
	var p tenon.Progress
	if json.Unmarshal(e.Data, &p) != nil {
		return
	}
	name := e.Step
	if records := agent.Calls(f.calls[e.Step]); len(records) == 1 {
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
	fmt.Fprint(f.a.err, "\r\x1b[K"+f.a.errStyle(dim, shorten(s, f.a.width()-1)))
}

func (f *follower) clear() {
	if f.status {
		f.status = false
		fmt.Fprint(f.a.err, "\r\x1b[K")
	}
}

func progressText(p tenon.Progress) string {
	s := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		s += fmt.Sprintf("/%g", p.Total)
	}
	return strings.TrimSpace(s + " " + safeLine(p.Message))
}

// argsShown is how much of a call's arguments stands in its line.
const argsShown = 120

// callLine is what is shown of a tool call that ended.
func (a *app) callLine(r agent.CallRecord) string {
	mark, outcome := green, "ok"
	switch {
	case r.Outcome == agent.CallDone && r.Success:
	case r.Outcome == agent.CallDone:
		mark, outcome = red, "error: "+r.Error
	case r.Outcome == agent.CallOpen:
		mark, outcome = yellow, "stopped"
	default:
		mark, outcome = red, r.Outcome+": "+r.Error
		if r.Outcome != agent.CallFailed {
			mark = yellow
		}
	}
	parts := []string{a.errStyle(mark, "●"), callName(r), a.errStyle(dim, shorten(safeLine(string(r.Args)), argsShown))}
	if r.Outcome != agent.CallDenied && r.Outcome != agent.CallInvalid && r.Outcome != agent.CallOpen {
		parts = append(parts, a.errStyle(dim, took(r.Millis)))
	}
	if r.Cached {
		parts = append(parts, a.errStyle(dim, "(cached)"))
	}
	if r.Attempts > 1 {
		parts = append(parts, a.errStyle(dim, "("+plural(r.Attempts, "attempt")+")"))
	}
	return strings.Join(append(parts, a.errStyle(mark, shorten(safeLine(outcome), 160))), " ")
}

// callName is server.tool, or the name the model used where there is no such
// tool.
func callName(r agent.CallRecord) string {
	if r.Server == "" {
		return safeLine(r.Name)
	}
	return safeLine(r.Server + "." + r.Remote)
}
