package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// ErrStopping as the cause of a request's end says that this process is about to end.
// The run that a client waits for goes on then; where the client goes away by itself
// the run is cancelled. It is a [tenon.ErrClosing].
var ErrStopping error = &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
	Message: "tenon is stopping; what was begun goes on when it is there again"}

// followed is what a run that a client waited for came to, or what it waits for.
type followed struct {
	agent.Report
	said    string // all text, one turn after the other
	waiting []host.Approval
}

// telling is told of a run while it goes on. Its functions may be nil; an error of one
// ends the following.
type telling struct {
	text func(string) error
	tool func(name string, success bool) error
}

// follow follows a run from an event on until it ends or waits for somebody.
func (c *call) follow(run tenon.Run, after uint64, tell telling) (followed, error) {
	f, err := c.followRun(run, after, tell)
	if err != nil && c.ctx().Err() != nil {
		if errors.Is(context.Cause(c.ctx()), ErrStopping) {
			return f, ErrStopping
		}
		_ = c.h.Cancel(context.WithoutCancel(c.ctx()), run.ID, "the client went away") // nobody is left to be told
	}
	return f, err
}

// maxHeard is up to how many events a run is reported from what was heard of it. The
// report of a longer one is read from the store.
const maxHeard = 128

func (c *call) followRun(run tenon.Run, after uint64, tell telling) (f followed, err error) {
	turn, names := "", map[string]string{}
	var said strings.Builder
	var all []tenon.Event // of the run, as long as they are few
	dialog, err := c.h.Dialog(c.ctx(), run.ID, after)
	if err != nil {
		return f, err
	}
	say := func(text string) error {
		if text == "" {
			return nil
		}
		first := turn == ""
		turn += text
		if first && said.Len() > 0 {
			text = "\n\n" + text // of the turn before
		}
		said.WriteString(text)
		if tell.text != nil {
			return tell.text(text)
		}
		return nil
	}
	react := false
	// Only what fits the form of the answer is said: a misfit is sent back to the model.
	held := c.h.Config().Agents[run.Agent].ResponseFormat.IsSet()
	for e, err := range c.h.Events(c.ctx(), run.ID, after) {
		if err != nil {
			return f, err
		}
		if e.Seq == uint64(len(all))+1 && len(all) < maxHeard {
			all = append(all, e)
		}
		for _, chunk := range dialog.Add(e) {
			var p host.Chunk
			if react = true; json.Unmarshal(chunk.Data, &p) == nil && p.Type == host.ChunkAnswer && !held {
				if err := say(p.Content); err != nil {
					return f, err
				}
			}
		}
		if held && (e.Kind == engine.LiveDelta || e.Kind == agent.EventModel) {
			err = fitting(e, say)
		} else {
			err = c.heard(e, react, say, &turn, names, tell)
		}
		if err != nil {
			return f, err
		}
		if e.Kind == tenon.EventQuestion {
			if f.waiting, err = c.h.Awaited(c.ctx(), run.ID); err != nil || len(f.waiting) > 0 {
				break
			}
		}
	}
	if err = c.ctx().Err(); err != nil {
		return f, err
	}
	f.said = said.String()
	if n := len(all); n > 0 && n < maxHeard && all[n-1].Kind == tenon.EventDone {
		f.Report = agent.Fold(run, all)
		return f, nil
	}
	if f.Report, err = c.h.Report(c.ctx(), run.ID); err == nil && !f.State.Ended() {
		f.waiting, err = c.h.Awaited(c.ctx(), run.ID)
	}
	return f, err
}

// fitting passes on an answer that fits the form that it has to have.
func fitting(e tenon.Event, say func(string) error) error {
	var a agent.Answered
	if e.Kind != agent.EventModel || json.Unmarshal(e.Data, &a) != nil {
		return nil
	}
	return say(string(a.Output))
}

// heard passes on what an event says. Of an answer whose pieces were missed, the rest
// comes with the whole.
func (c *call) heard(e tenon.Event, react bool, say func(string) error, turn *string, names map[string]string, tell telling) error {
	switch e.Kind {
	case engine.LiveDelta:
		var d engine.Delta
		if !react && json.Unmarshal(e.Data, &d) == nil && d.Kind == "text" {
			return say(d.Text)
		}
	case engine.LiveReset:
		*turn = ""
	case agent.EventModel:
		var r tenon.Response
		if !react && json.Unmarshal(e.Data, &r) == nil && r.Message != nil {
			if rest, ok := strings.CutPrefix(r.Message.Text(), *turn); ok {
				if err := say(rest); err != nil {
					return err
				}
			}
		}
		*turn = ""
	case agent.EventProposed:
		var call tenon.ToolCall
		if json.Unmarshal(e.Data, &call) == nil {
			names[e.Step] = call.Name
		}
	case agent.EventResult:
		var o agent.Outcome
		if tell.tool != nil && names[e.Step] != "" && json.Unmarshal(e.Data, &o) == nil {
			return tell.tool(names[e.Step], o.Result != nil && !o.Result.IsError)
		}
	}
	return nil
}
