package host

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/model"
)

// LiveChunk is the kind of the live events (Seq 0) of a run in mode react that say
// in one form what is thought, done, seen and answered; data: [Chunk]. They are
// made of the run's other events by a [Dialog].
const LiveChunk = "chunk"

// The types of a [Chunk].
const (
	ChunkThought     = "thought"
	ChunkAction      = "action"      // the content is the tool's name
	ChunkObservation = "observation" // what the model is told about the call
	ChunkAnswer      = "answer"
	ChunkError       = "error" // why the run has no answer
)

// Chunk is a piece of one message of a dialog. The pieces of a message have its id;
// the last one ends it, and may be empty.
type Chunk struct {
	Type         string          `json:"message_type"`
	ID           string          `json:"message_id"`
	Content      string          `json:"content"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // of an action
	Reset        bool            `json:"reset,omitempty"`     // what came of this message before is void
	EndOfMessage bool            `json:"end_of_message"`
	EndOfDialog  bool            `json:"end_of_dialog"` // the run has ended
}

// Dialog makes chunks of a run's events. Live events may be missed: what is stored
// completes the messages. The zero value is ready for a run's first event; it is
// not safe for concurrent use.
type Dialog struct {
	react, begun bool
	thought      piece
	answer       piece
	calls        map[string][]tenon.Event // that have no observation yet, by step
	order        []string
	out          []tenon.Event
	at           tenon.Event // that is taken now
}

// piece is a message that comes bit by bit.
type piece struct {
	step string
	said strings.Builder
	open bool
}

// Dialog returns the dialog of a run after the given event.
func (h *Host) Dialog(ctx context.Context, run string, after uint64) (*Dialog, error) {
	d := &Dialog{}
	if after == 0 {
		return d, nil
	}
	events, err := h.store.Events(ctx, run, 0, int(after))
	for _, e := range events {
		d.Add(e)
	}
	return d, err
}

// Add takes the next event and returns the chunks that follow from it. Of a run that
// calls its tools natively there are none.
func (d *Dialog) Add(e tenon.Event) []tenon.Event {
	d.out, d.at = nil, e
	inner, _, isQuestion := strings.Cut(e.Step, "/")
	switch {
	case e.Kind == tenon.EventRun:
		d.react = isReact(e)
	case e.Kind == tenon.EventDone:
		d.done(e)
	case isQuestion:
	case strings.Contains(inner, "."):
		d.call(e)
	case e.Kind == tenon.EventStarted:
		d.started()
	case !d.react:
	case e.Kind == engine.LiveDelta:
		d.delta(e)
	case e.Kind == engine.LiveReset:
		d.reset(&d.thought, ChunkThought)
		d.reset(&d.answer, ChunkAnswer)
	case e.Kind == agent.EventModel:
		d.model(e)
	}
	return d.out
}

// isReact reports whether the spec of a run has the text loop.
func isReact(e tenon.Event) bool {
	var spec struct {
		Data struct {
			React *agent.React `json:"react"`
		} `json:"data"`
	}
	return json.Unmarshal(e.Data, &spec) == nil && spec.Data.React != nil
}

func (d *Dialog) put(c Chunk, step string) {
	d.begun = true
	if c.ID == "" {
		c.ID = step + "/" + c.Type
	}
	d.out = append(d.out, tenon.Event{Run: d.at.Run, Time: d.at.Time, Step: step, Kind: LiveChunk, Data: encode(c)})
}

// say adds to a message that comes bit by bit.
func (d *Dialog) say(p *piece, typ, text string) {
	if p.step != d.at.Step {
		*p = piece{step: d.at.Step}
	}
	p.said.WriteString(text)
	p.open = true
	d.put(Chunk{Type: typ, Content: text}, p.step)
}

// end ends such a message, if it has begun.
func (d *Dialog) end(p *piece, typ string, last bool) {
	if p.open {
		p.open = false
		d.put(Chunk{Type: typ, EndOfMessage: true, EndOfDialog: last}, p.step)
	}
}

func (d *Dialog) reset(p *piece, typ string) {
	if p.step == d.at.Step && p.said.Len() > 0 {
		p.said.Reset()
		p.open = true
		d.put(Chunk{Type: typ, Reset: true}, p.step)
	}
}

func (d *Dialog) delta(e tenon.Event) {
	var delta engine.Delta
	if json.Unmarshal(e.Data, &delta) != nil || delta.Text == "" {
		return
	}
	switch delta.Kind {
	case tenon.DeltaThinking:
		d.say(&d.thought, ChunkThought, delta.Text)
	case tenon.DeltaText:
		d.end(&d.thought, ChunkThought, false)
		d.say(&d.answer, ChunkAnswer, delta.Text)
	}
}

// rest says what of a message has not been said.
func (d *Dialog) rest(p *piece, typ, text string) {
	if p.step != d.at.Step {
		*p = piece{step: d.at.Step}
	}
	rest, ok := strings.CutPrefix(text, p.said.String())
	if !ok {
		d.reset(p, typ)
		rest = text
	}
	if rest != "" {
		d.say(p, typ, rest)
	}
}

// model takes a whole answer.
func (d *Dialog) model(e tenon.Event) {
	var r tenon.Response
	if json.Unmarshal(e.Data, &r) != nil || r.Message == nil {
		return // the run's end will say so
	}
	var thoughts []string
	for _, p := range r.Message.Parts {
		if p.Type == tenon.PartThinking && p.Text != "" {
			thoughts = append(thoughts, p.Text)
		}
	}
	d.rest(&d.thought, ChunkThought, strings.Join(thoughts, "\n"))
	d.end(&d.thought, ChunkThought, false)
	for _, c := range r.Message.Calls() {
		d.put(Chunk{Type: ChunkAction, ID: e.Step + "/" + ChunkAction + "/" + c.ID, Content: c.Name, Arguments: c.Arguments, EndOfMessage: true}, e.Step)
	}
	if r.Stop == tenon.StopBadCall {
		d.put(Chunk{Type: ChunkObservation, Content: "Error: " + r.RawStop, EndOfMessage: true}, e.Step)
	}
	d.rest(&d.answer, ChunkAnswer, r.Message.Text()) // it ends with the run, or when the run goes on
}

// call takes an event of a tool call, and tells how the call ended.
func (d *Dialog) call(e tenon.Event) {
	switch {
	case e.Kind == agent.EventProposed && d.react:
		if d.calls == nil {
			d.calls = map[string][]tenon.Event{}
		}
		d.order = append(d.order, e.Step)
		d.calls[e.Step] = []tenon.Event{e}
		return
	case d.calls[e.Step] == nil || e.Seq == 0:
		return
	case e.Kind == agent.EventHandoff:
		var h agent.Handoff
		_ = json.Unmarshal(e.Data, &h) // without one the run fails
		d.observed(e.Step, h.Text)
		d.react = h.React != nil
		return
	}
	d.calls[e.Step] = append(d.calls[e.Step], e)
	var f agent.Failure
	if e.Kind == agent.EventFailed && json.Unmarshal(e.Data, &f) == nil && f.Retry {
		return // if it is not tried again, the next turn tells
	}
	d.tell(e.Step)
}

// tell tells how a call ended, if it has.
func (d *Dialog) tell(step string) {
	records := agent.Calls(d.calls[step]) // none for one that was told of
	if len(records) != 1 || records[0].Outcome == agent.CallOpen {
		return
	}
	switch r := records[0]; {
	case r.Outcome != agent.CallDone:
		d.observed(step, "Error: "+r.Error)
	case r.Result == nil:
		d.observed(step, "")
	default:
		text := r.Result.Text()
		if len(r.Result.Content) > 0 {
			text = model.ResultText(&tenon.ToolResult{Content: r.Result.Content})
		}
		if r.Result.IsError {
			text = "Error: " + text
		}
		d.observed(step, text)
	}
}

func (d *Dialog) observed(step, text string) {
	delete(d.calls, step)
	d.put(Chunk{Type: ChunkObservation, Content: text, EndOfMessage: true}, step)
}

// started takes the beginning of a turn: the one before is over.
func (d *Dialog) started() {
	d.settle()
	d.end(&d.answer, ChunkAnswer, false)
}

// settle tells of the calls that were to be tried again and were not.
func (d *Dialog) settle() {
	for _, step := range d.order {
		d.tell(step)
	}
	d.order, d.calls = nil, nil
}

// done takes the end of the run, which ends the dialog.
func (d *Dialog) done(e tenon.Event) {
	var end tenon.DoneData
	if !d.react && !d.begun || json.Unmarshal(e.Data, &end) != nil {
		return
	}
	d.settle()
	switch {
	case end.State != tenon.RunCompleted:
		d.end(&d.answer, ChunkAnswer, false)
		c := Chunk{Type: ChunkError, ID: ChunkError, Content: string(end.Stop), EndOfMessage: true, EndOfDialog: true}
		if end.Error != nil {
			c.Content = end.Error.Message
		}
		d.put(c, "")
	case d.answer.open:
		d.end(&d.answer, ChunkAnswer, true)
	default: // it is empty, or was given before
		d.put(Chunk{Type: ChunkAnswer, ID: ChunkAnswer, Content: end.Answer, EndOfMessage: true, EndOfDialog: true}, "")
	}
}
