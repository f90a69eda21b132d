package agent

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
)

// DirectVersion names the core of a single tool call that a person makes.
const DirectVersion = "call@1"

// directStep is the one step of such a run.
const directStep = "1.0"

// DirectSpec is what a person's own tool call starts from.
type DirectSpec struct {
	Name      string          `json:"name"` // exposed
	Arguments json.RawMessage `json:"arguments"`
	Tools     string          `json:"tools"` // digest of the tool snapshot
	By        string          `json:"by"`    // who calls, and so allows
}

// Direct is the core of a person's own tool call: the same steps, policy and
// record as a model's, without a model. The call itself is the person's consent,
// so only a deny rule stops it.
type Direct struct {
	spec   DirectSpec
	call   *call
	failed *tenon.Error
	cancel *tenon.CancelData
	used   Summary // by models that answered the server
	ended  bool
}

// NewDirect returns the core of a run that has no events yet.
func NewDirect(spec DirectSpec) *Direct {
	return &Direct{spec: spec, call: &call{step: directStep, tool: &tenon.ToolCall{Name: spec.Name, Arguments: spec.Arguments}}}
}

// Apply folds one event into the state.
func (d *Direct) Apply(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventRun, EventProposed, EventMessage:
		return nil
	case tenon.EventDone:
		d.ended = true
		return nil
	case tenon.EventRetry:
		// The outcome is on record; a person who wants it again calls again.
		return nil
	case tenon.EventCancel:
		d.cancel = new(tenon.CancelData)
		return decode(e, d.cancel)
	}
	if parent, ok := parentStep(e.Step); ok && parent == directStep {
		d.spend(e)
		return d.call.applyQuestion(e)
	}
	if e.Step != directStep || d.call.status == settled {
		return outOfPlace(e)
	}
	d.spend(e)
	if err := d.call.apply(e); err != nil || d.call.status != settled {
		return err
	}
	if e.Kind == EventResult || e.Kind == tenon.EventUnknown {
		d.used.Cost += d.call.cost()
	}
	d.failed = d.reason(e)
	return nil
}

// reason says why the call came to no result, nil where it did.
func (d *Direct) reason(e tenon.Event) *tenon.Error {
	switch e.Kind {
	case EventResult:
		return nil
	case tenon.EventExpired:
		return tenon.Errorf(tenon.CodeWaiting, "%s", d.call.result.Content[0].Text)
	case EventAdmitted:
		return tenon.Errorf(tenon.CodeRateLimited, "%s", d.call.result.Content[0].Text[len("Error: "):])
	case EventDecided, EventDecision:
		return tenon.Errorf(tenon.CodeDenied, "%s", refusal(d.call.decision.By, d.call.decision.Reason))
	}
	var f Failure     // an Answer has its error under the same name
	_ = decode(e, &f) // call.apply has read it already
	if e.Kind == tenon.EventUnknown {
		return tenon.Errorf(tenon.CodeUnknown, "%s", unknownText(f.Error))
	}
	return f.Error
}

// Next returns what is to be done now. See [tenon.Core].
func (d *Direct) Next() []tenon.Command {
	c := d.call
	switch {
	case d.ended || c.status == running && d.cancel != nil:
		return nil
	case c.status == running:
		return c.waits()
	case c.status == settled && d.failed != nil:
		return d.done(tenon.RunFailed, tenon.StopError, d.failed)
	case c.status == settled:
		return d.done(tenon.RunCompleted, tenon.StopEnd, nil)
	case d.cancel != nil:
		return d.done(tenon.RunCancelled, tenon.StopCancelled, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled"))
	case c.status == proposed:
		return []tenon.Command{{Step: directStep, Kind: CommandDecide, Idempotent: true,
			Data: mustJSON(DecideCommand{Call: *c.tool, View: View{Tools: d.spec.Tools}, Grant: d.spec.By, Propose: true})}}
	case c.status == ready && c.needsTurn():
		return []tenon.Command{c.admission()}
	case c.status == ready:
		return []tenon.Command{c.command(Budgets{}, nil)}
	default:
		return []tenon.Command{{Step: directStep, Kind: tenon.CommandWait, After: c.decision.Expires, Data: mustJSON(c.asking())}}
	}
}

func (d *Direct) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	return []tenon.Command{{Kind: tenon.CommandDone, Data: mustJSON(tenon.DoneData{State: state, Stop: stop, Error: err,
		Data: mustJSON(Summary{ToolCalls: 1, Usage: d.used.Usage, Cost: d.used.Cost})})}}
}

// spend counts what a model used that answered the server.
func (d *Direct) spend(e tenon.Event) {
	if usage, cost := used(e); usage != nil {
		d.used.Usage.Add(usage)
		d.used.Cost += cost
	}
}

var _ tenon.Core = (*Direct)(nil)
