package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// openCalls are the calls of the last message of a session that have not ended.
type openCalls struct {
	message int               // its number
	states  map[string]string // by RUN/ID of the call, in words
}

// openCalls finds the calls of a conversation that have not ended. For such a call the messages contain a result that
// only a model gets, in case that the run continues without the call. A person sees the state instead.
func (a *app) openCalls(ctx context.Context, h desk, session string, said []transcript.Message) (openCalls,
	error) {
	open := openCalls{message: len(said), states: map[string]string{}}
	if len(said) == 0 || said[len(said)-1].Role != tenon.RoleTool {
		return open, nil // only the last message can have such a result
	}
	calls, err := h.Sessions().Transcripts().Calls(ctx, session)
	if err != nil {
		return open, err
	}
	calls = slices.DeleteFunc(calls, func(c view.Call) bool { return c.Outcome != view.CallOpen })
	if len(calls) == 0 {
		return open, nil
	}
	runs, err := h.Runs().List(ctx, engine.Filter{Session: session, State: tenon.RunWorking})
	if err != nil {
		return open, err
	}
	dead, err := interruptedRuns(ctx, h, runs)
	if err != nil {
		return open, err
	}
	for _, c := range calls {
		open.states[c.Run+"/"+c.ID] = stateOfOpen(c, dead[c.Run])
	}
	return open, nil
}

// stateOfOpen returns the state of a call that has not ended. dead says that no process works on its run.
func stateOfOpen(c view.Call, dead bool) string {
	asks := len(c.Questions) > 0 && c.Questions[len(c.Questions)-1].Outcome == view.CallOpen
	switch {
	case asks:
		return "waits for input"
	case c.Attempts == 0 && c.Verdict == tenon.Ask:
		return "waits for approval"
	case dead:
		return "interrupted; tenon runs resume continues the run"
	case c.Attempts == 0:
		return "not begun"
	}
	return "running"
}

// of returns the state of the call that a result belongs to, "" if the call has ended.
func (o openCalls) of(m transcript.Message, p tenon.Part) string {
	if p.Result == nil || m.N != o.message {
		return ""
	}
	return o.states[m.Run+"/"+p.Result.ID]
}

// split returns a message without the results of open calls, nil if it has no others, and the states of these calls.
func (o openCalls) split(m transcript.Message) (rest *tenon.Message, states []string) {
	kept := &tenon.Message{Role: m.Role, By: m.By}
	for _, p := range m.Parts {
		if state := o.of(m, p); state != "" {
			states = append(states, p.Result.Name+" "+state)
			continue
		}
		kept.Parts = append(kept.Parts, p)
	}
	if len(states) == 0 {
		return m.Message, nil
	}
	if len(kept.Parts) == 0 {
		return nil, states
	}
	return kept, states
}

// ended returns the messages without the results of open calls.
func (o openCalls) ended(said []transcript.Message) []transcript.Message {
	list := make([]transcript.Message, 0, len(said))
	for _, m := range said {
		if m.Message, _ = o.split(m); m.Message != nil {
			list = append(list, m)
		}
	}
	return list
}

// showOpen writes the states of a message's open calls.
func (a *app) showOpen(b *strings.Builder, states []string) {
	for _, s := range states {
		fmt.Fprintf(b, "  %s %s\n", a.outStyle(yellow, "…"), a.outStyle(dim, safeLine(s)))
	}
}
