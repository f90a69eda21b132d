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
	MaxDepth  int             `json:"max_depth,omitempty"`
	// Inputs are the tables that a workflow tool gets, by the names of its ports.
	Inputs map[string]tenon.Table `json:"inputs,omitempty"`
	// Inner says who allowed beforehand what the steps of a workflow tool would ask.
	Inner string `json:"inner,omitempty"`
	Debug bool   `json:"debug,omitempty"` // keep the folder of a workflow that fails
	// Brought are the servers for which the caller brought credentials of its own.
	Brought []string `json:"own_credentials,omitempty"`
}

// Direct is the core of a person's own tool call: the same steps, policy and
// record as a model's, without a model. The call itself is the person's consent,
// so only a deny rule stops it.
type Direct struct {
	spec   DirectSpec
	call   *CallStep
	cancel *tenon.CancelData
	ended  bool
}

// NewDirect returns the core of a run that has no events yet.
func NewDirect(spec DirectSpec) *Direct {
	return &Direct{spec: spec, call: NewCallStep("", directStep, tenon.ToolCall{Name: spec.Name, Arguments: spec.Arguments},
		CallBounds{Depth: 1, MaxDepth: spec.MaxDepth})}
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
		// The outcome is on record, and the run ends with it once more; a person who wants
		// the call again calls again.
		d.ended = false
		return nil
	case tenon.EventCancel:
		var c tenon.CancelData
		if err := decode(e, &c); err != nil {
			return err
		}
		d.cancel = &c
		return nil
	}
	if !d.call.Owns(e.Step) {
		return outOfPlace(e)
	}
	return d.call.Apply(e)
}

// Next returns what is to be done now. See [tenon.Core].
func (d *Direct) Next() []tenon.Command {
	_, _, failed := d.call.Outcome()
	switch {
	case d.ended || d.call.IsRunning() && d.cancel != nil:
		return nil
	case d.call.IsSettled() && failed != nil:
		return d.done(tenon.RunFailed, tenon.StopError, failed)
	case d.call.IsSettled():
		return d.done(tenon.RunCompleted, tenon.StopEnd, nil)
	case d.cancel != nil:
		return d.done(tenon.RunCancelled, tenon.StopCancelled, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled"))
	}
	// The call is allowed by who makes it; what it leads to is not.
	return d.call.Next(CallContext{Tools: d.spec.Tools, Grant: d.spec.By, Inner: d.spec.Inner, Inputs: d.spec.Inputs, Debug: d.spec.Debug})
}

func (d *Direct) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	used := d.call.Used()
	used.ToolCalls++
	return []tenon.Command{{Kind: tenon.CommandDone, Data: mustJSON(tenon.DoneData{State: state, Stop: stop, Error: err, Data: mustJSON(used)})}}
}

var _ tenon.Core = (*Direct)(nil)
