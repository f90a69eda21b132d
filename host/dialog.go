package host

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/view"
)

// LiveChunk is the kind of the live events (Seq 0) of a run in mode react. They describe thoughts, actions,
// observations and answers in one format; data: [Chunk]. A [Dialog] makes them from the run's other events.
const LiveChunk = "chunk"

// The types of a [Chunk].
const (
	ChunkThought     = "thought"
	ChunkAction      = "action"      // the content is the tool's name
	ChunkObservation = "observation" // the result of the call, as the model reads it
	ChunkAnswer      = "answer"
	ChunkError       = "error" // why the run has no answer
)

// Chunk is a piece of one message of a dialog. All pieces of a message have its id. The last piece ends the message and
// may be empty.
type Chunk struct {
	Type         string          `json:"message_type"`
	ID           string          `json:"message_id"`
	Content      string          `json:"content"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // of an action
	Reset        bool            `json:"reset,omitempty"`     // discard the earlier pieces of this message
	EndOfMessage bool            `json:"end_of_message"`
	EndOfDialog  bool            `json:"end_of_dialog"` // the run has ended
}

// Dialog makes chunks from a run's events. Live events may be missed: the stored events complete the messages. The zero
// value is ready for a run's first event. It is not safe for concurrent use.
type Dialog struct {
	react, begun bool
	thought      piece
	answer       piece
	calls        map[string][]tenon.Event // calls without an observation, by step
	order        []string
	out          []tenon.Event
	at           tenon.Event // the event that Add is reading
}

// piece is a message that arrives in pieces.
type piece struct {
	step string
	said strings.Builder
	open bool
}

// NewDialog returns the dialog of a run after the given event.
func NewDialog(ctx context.Context, v View, after uint64) (*Dialog, error) {
	d := &Dialog{}
	if after == 0 {
		return d, nil
	}
	events, err := v.Journal(ctx, 0, int(after))
	for _, e := range events {
		d.Add(e)
	}
	return d, err
}

// Add takes the next event and returns the resulting chunks. A run that calls its tools natively has none.
func (d *Dialog) Add(e tenon.Event) []tenon.Event {
	d.out, d.at = nil, e
	step := tenon.ParseStep(e.Step)
	switch {
	case e.Kind == tenon.EventRun:
		d.react = isReact(e)
	case e.Kind == tenon.EventDone:
		d.done(e)
	case step.IsQuestion():
	case step.IsCall():
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

// isReact reports whether the spec of a run selects the text loop.
func isReact(e tenon.Event) bool {
	// A spec can be long, and each run has one, so only this member is looked for (P6.cpu).
	return !rawjson.IsNull(rawjson.Field(rawjson.Field(e.Data, "data"), "react"))
}

func (d *Dialog) put(c Chunk, step string) {
	d.begun = true
	c.ID = cmp.Or(c.ID, step+"/"+c.Type)
	d.out = append(d.out, tenon.Event{Run: d.at.Run, Time: d.at.Time, Step: step, Kind: LiveChunk, Data: encode(c)})
}

// say adds text to a message that arrives in pieces.
func (d *Dialog) say(p *piece, typ, text string) {
	if p.step != d.at.Step {
		*p = piece{step: d.at.Step}
	}
	p.said.WriteString(text)
	p.open = true
	d.put(Chunk{Type: typ, Content: text}, p.step)
}

// end ends such a message if it has begun.
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
	delta := view.As[engine.Delta](e)
	if delta.Text == "" {
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

// rest adds the missing rest of a message.
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

// model takes a complete answer of the model.
func (d *Dialog) model(e tenon.Event) {
	r := view.As[agent.Answered](e)
	if r.Message == nil {
		return // the end of the run reports why
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
		d.put(Chunk{Type: ChunkAction, ID: e.Step + "/" + ChunkAction + "/" + c.ID, Content: c.Name,
			Arguments: c.Arguments, EndOfMessage: true}, e.Step)
	}
	if r.Stop == tenon.StopBadCall {
		d.put(Chunk{Type: ChunkObservation, Content: "Error: " + r.RawStop, EndOfMessage: true}, e.Step)
	}
	d.rest(&d.answer, ChunkAnswer, r.Message.Text()) // the message ends with the run, or when the run continues
}

// call takes an event of a tool call and reports the outcome of the call.
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
		h := view.As[agent.Handoff](e) // without one the run fails
		d.observed(e.Step, h.Text)
		d.react = h.React != nil
		return
	}
	d.calls[e.Step] = append(d.calls[e.Step], e)
	if e.Kind == agent.EventFailed && view.As[agent.Failure](e).Retry {
		return // if there is no further attempt, the next turn reports it
	}
	d.tell(e.Step)
}

// tell reports the outcome of a call that has ended.
func (d *Dialog) tell(step string) {
	records := view.Of(d.calls[step]).Calls() // empty if the outcome was reported
	if len(records) != 1 || records[0].Outcome == view.CallOpen {
		return
	}
	switch r := records[0]; {
	case r.Outcome != view.CallDone:
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

// started takes the beginning of a turn, which ends the previous turn.
func (d *Dialog) started() {
	d.settle()
	d.end(&d.answer, ChunkAnswer, false)
}

// settle reports the calls that should have been tried again and were not.
func (d *Dialog) settle() {
	for _, step := range d.order {
		d.tell(step)
	}
	d.order, d.calls = nil, nil
}

// done takes the end of the run, which ends the dialog.
func (d *Dialog) done(e tenon.Event) {
	end, err := view.Try[tenon.DoneData](e)
	if err != nil || !d.react && !d.begun {
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
	default: // the answer is empty, or was sent before
		d.put(Chunk{Type: ChunkAnswer, ID: ChunkAnswer, Content: end.Answer, EndOfMessage: true, EndOfDialog: true}, "")
	}
}
