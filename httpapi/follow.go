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
	"github.com/tenonhq/tenon/view"
)

// ErrStopping is the cause of a request's context when this process shuts down. In this case, the run for which a
// client waits continues after the restart. ErrStopping wraps [tenon.ErrClosing].
var ErrStopping error = &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
	Message: "tenon is stopping; it continues its runs when it is started again"}

// followed is the result of following a run until it ended or needs a decision.
type followed struct {
	view.Report
	said    string            // the text of all turns, separated by blank lines
	cited   []tenon.Citation  // sources of the text in said
	probs   []tenon.TokenProb // probabilities of the tokens of the text in said
	waiting []host.Approval   // pending decisions; empty if the run has ended
	// calls are the client's calls with which the answer ended. They are set even if the run has continued since, so
	// that a repeated request gets the same answer. until is the number of the answer's last event.
	calls []openCall
	until uint64
}

// telling contains callbacks for the progress of a run that is followed. Each may be nil. If one returns an error,
// following ends with this error.
type telling struct {
	text  func(string) error
	event func(tenon.Event) error // every event, before its text
	// calls ends following at an answer with calls of the client's tools, because the events after that belong to the
	// answer to another request.
	calls bool
	// at, if not nil, is the place after which following begins. It is updated to the current place.
	at *place
}

// follow follows a run, from the event after the number after, until it ends or needs a decision. If the client
// disconnects meanwhile, and is the last one that waits for the run, [Config.CancelLeft] determines whether the run is
// cancelled.
func (c *call) follow(run tenon.Run, after uint64, tell telling) (followed, error) {
	c.waiters.enter(run.ID)
	f, err := c.followRun(run, after, tell)
	gone := err != nil && c.ctx().Err() != nil
	if gone && errors.Is(context.Cause(c.ctx()), ErrStopping) {
		c.waiters.leave(run.ID, false)
		return f, ErrStopping
	}
	cancel := c.waiters.leave(run.ID, gone && !c.guest)
	if gone {
		c.left.add(c.digest(), run.ID)
	}
	if cancel && c.cfg.CancelLeft && err != nil { // without an error, the run has ended or waits
		// An error of Cancel cannot be reported: the client has disconnected.
		_ = c.h.Runs().Cancel(context.WithoutCancel(c.ctx()), run.ID, "the client went away")
	}
	return f, err
}

// maxHeard bounds the events that followRun keeps. A run with fewer events is reported from them. The report of a
// longer run is read from the store.
const maxHeard = 128

func (c *call) followRun(run tenon.Run, after uint64, tell telling) (f followed, err error) {
	if tell.at == nil {
		tell.at = &place{}
	}
	out := &speaker{telling: tell, skip: tell.at.said, spoken: tell.at.spoken}
	var all []tenon.Event // the run's first events, at most maxHeard
	dialog, err := host.NewDialog(c.ctx(), c.h.Runs().Open(run.ID), after)
	if err != nil {
		return f, err
	}
	react := false
	// If the agent has a response format, text is held back until the whole answer fits the format. The model is asked
	// again for an answer that does not fit, and the client must not see the rejected answer.
	held, err := c.hasForm(run, after)
	if err != nil {
		return f, err
	}
	var mine clientCalls
	var last tenon.Event // the last stored event
	for e, err := range c.h.Runs().Events(c.ctx(), run.ID, after) {
		if err != nil {
			return f, err
		}
		if tell.calls && mine.apply(e) {
			break
		}
		if e.Seq > 0 {
			last = e
		}
		if e.Kind == tenon.EventRun {
			held = isFormed(e)
		}
		if e.Seq == uint64(len(all))+1 && len(all) < maxHeard {
			all = append(all, e)
		}
		if tell.event != nil {
			if err := tell.event(e); err != nil {
				return f, err
			}
		}
		for _, chunk := range dialog.Add(e) {
			var p host.Chunk
			react = true
			if json.Unmarshal(chunk.Data, &p) == nil && p.Type == host.ChunkAnswer && !held {
				if err := out.say(p.Content); err != nil {
					return f, err
				}
			}
		}
		if held && (e.Kind == engine.LiveDelta || e.Kind == agent.EventModel) {
			err = fitting(e, out.say)
		} else {
			err = heard(e, react, out.say, &out.turn)
		}
		if err != nil {
			return f, err
		}
		f.cite(e, out.said.String())
		if e.Seq > 0 {
			*tell.at = place{e.Seq, len(out.turn), out.spoken}
		}
		if e.Kind == tenon.EventQuestion {
			if f.waiting, err = c.h.Approvals().List(c.ctx(), run.ID); err != nil || len(f.waiting) > 0 {
				break
			}
		}
	}
	if err = c.ctx().Err(); err != nil {
		return f, err
	}
	f.said = out.said.String()
	err = c.outcome(&f, run, all, mine.list(run.ID), last)
	return f, err
}

// speaker passes on the text of a run, turn by turn. It omits the part of the first turn that the client already has.
type speaker struct {
	telling
	turn   string          // the text of this turn
	skip   int             // bytes that the client already has
	spoken bool            // the client has text of the answer
	said   strings.Builder // what was passed on
}

func (o *speaker) say(text string) error {
	if text == "" {
		return nil
	}
	first := o.turn == ""
	o.turn += text
	o.at.said = len(o.turn)
	if n := min(o.skip, len(text)); n > 0 {
		first = false
		text, o.skip = text[n:], o.skip-n
		if text == "" {
			return nil
		}
	}
	if first && o.spoken {
		text = "\n\n" + text // separates the turn from the previous one
	}
	o.spoken, o.at.spoken = true, true
	o.said.WriteString(text)
	if o.text != nil {
		return o.text(text)
	}
	return nil
}

// outcome adds the report of a run that has ended or waits. all are its first events, at most maxHeard. calls are calls
// for the client, and last is the last stored event.
func (c *call) outcome(f *followed, run tenon.Run, all []tenon.Event, calls []openCall, last tenon.Event) error {
	if n := len(all); n > 0 && n < maxHeard && all[n-1].Kind == tenon.EventDone {
		f.Report = view.Of(all).Report(run)
		f.Error = c.advised(f.Error)
		return nil
	}
	var err error
	f.Report, err = c.h.Runs().Open(run.ID).Report(c.ctx())
	f.Error = c.advised(f.Error)
	if len(calls) > 0 && last.Kind != tenon.EventDone {
		f.calls, f.until = calls, last.Seq
		f.State, f.Stop, f.Error = tenon.RunInputRequired, "", nil // even if the run has continued since
	}
	if err == nil && !f.State.Ended() {
		f.waiting, err = c.h.Approvals().List(c.ctx(), run.ID)
	}
	return err
}

// maxCited bounds the citations of a followed run.
const maxCited = 1024

// maxProbs bounds the probabilities of tokens of a followed run.
const maxProbs = 200_000

// cite adds the citations of an answer. The answer is the end of said. If said has the answer in another form, such as
// the JSON of a response format, the citations get no position.
func (f *followed) cite(e tenon.Event, said string) {
	if e.Kind != agent.EventModel {
		return
	}
	answer := view.As[agent.Answered](e)
	m := answer.Message
	if m == nil {
		return
	}
	if f.probs = append(f.probs, answer.Logprobs...); len(f.probs) > maxProbs {
		f.probs = f.probs[:maxProbs]
	}
	at := len(said) - len(m.Text())
	same := strings.HasSuffix(said, m.Text())
	for _, c := range m.Citations() {
		if len(f.cited) == maxCited {
			return
		}
		if !same {
			c.Start, c.End = 0, 0
		} else if c.End > 0 {
			c.Start, c.End = c.Start+at, c.End+at
		}
		f.cited = append(f.cited, c)
	}
}

// hasForm reports whether the answer of a run must match a schema. If after is 0, it returns false, because the first
// event of the run is still to come and is checked then.
func (c *call) hasForm(run tenon.Run, after uint64) (bool, error) {
	if after == 0 {
		return false, nil
	}
	first, err := c.h.Runs().Open(run.ID).Journal(c.ctx(), 0, 1)
	return err == nil && len(first) > 0 && isFormed(first[0]), err
}

// isFormed reports whether the first event of a run contains a schema for the answer.
func isFormed(e tenon.Event) bool {
	_, spec, err := view.Spec[struct {
		Output json.RawMessage `json:"output_schema"`
	}](e)
	return err == nil && len(spec.Output) > 0
}

// fitting passes an answer to say when it fits the agent's response format. It ignores all other events.
func fitting(e tenon.Event, say func(string) error) error {
	if e.Kind != agent.EventModel {
		return nil
	}
	return say(string(view.As[agent.Answered](e).Output))
}

// heard passes the text of an event to say. If pieces of a streamed answer were missed, it takes the remaining text
// from the complete answer.
func heard(e tenon.Event, react bool, say func(string) error, turn *string) error {
	if e.Kind == engine.LiveReset {
		*turn = ""
		return nil
	}
	data, err := view.Decode(e)
	if err != nil {
		return nil // the end of the run reports it
	}
	switch d := data.(type) {
	case *engine.Delta:
		if !react && d.Kind == tenon.DeltaText {
			return say(d.Text)
		}
	case *agent.Answered:
		if !react && d.Message != nil {
			rest, ok := strings.CutPrefix(d.Message.Text(), *turn)
			if ok {
				err = say(rest)
			}
		}
		*turn = ""
		return err
	}
	return nil
}
