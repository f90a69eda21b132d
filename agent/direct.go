package agent

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
)

// DirectVersion names the core of a single tool call by a person.
const DirectVersion = "call@1"

// directStep is the only step of such a run.
const directStep = "1.0"

// DirectSpec is the data of the first event of a person's own tool call.
type DirectSpec struct {
	Name      string          `json:"name"` // exposed
	Arguments json.RawMessage `json:"arguments"`
	Tools     string          `json:"tools"` // digest of the tool snapshot
	By        string          `json:"by"`    // the caller, who thereby allows the call unless Ask is set
	MaxDepth  int             `json:"max_depth,omitempty"`
	// Inputs are the tables for a workflow tool: port → table.
	Inputs map[string]tenon.Table `json:"inputs,omitempty"`
	// Inner says who approved the steps of a workflow tool in advance.
	Inner string `json:"inner,omitempty"`
	Debug bool   `json:"debug,omitempty"` // keep the folder of a workflow that fails
	// Brought names the servers for which the caller supplied credentials.
	Brought []string `json:"own_credentials,omitempty"`
	// Table is the table that defines the tool, or nil if the configuration defines it.
	Table *ToolTable `json:"table,omitempty"`
	// Ask says that the call is not its caller's consent: a program made it, such as a client of the gateway. The call
	// then waits for approval where the rules ask.
	Ask bool `json:"ask,omitempty"`
	// Budgets must have room for a call with Ask. A person's own call is charged to none.
	Budgets Budgets `json:"budgets,omitzero"`
}

// Direct is the core of a person's own tool call. It has the steps, policy and journal of a model's call, without a
// model. The call itself is the person's consent, so only a deny rule stops it, unless [DirectSpec.Ask] is set.
type Direct struct {
	spec   DirectSpec
	call   *CallStep
	cancel *tenon.CancelData
	ended  bool
}

// NewDirect returns the core of a run that has no events yet.
func NewDirect(spec DirectSpec) *Direct {
	return &Direct{spec: spec, call: NewCallStep("", directStep, tenon.ToolCall{Name: spec.Name,
		Arguments: spec.Arguments},
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
		// The outcome is stored, and the run ends with it again. To repeat the call, the person makes a new one.
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
	_, unknown, failed := d.call.Outcome()
	switch {
	case d.ended || d.call.IsRunning() && d.cancel != nil:
		return nil
	case d.call.IsSettled() && d.cancel != nil && (unknown || tenon.ErrorCode(failed) == tenon.CodeCancelled):
		// The error says that the call may have had effects.
		return d.done(tenon.RunCancelled, tenon.StopCancelled, failed)
	case d.call.IsSettled() && failed != nil:
		return d.done(tenon.RunFailed, tenon.StopError, failed)
	case d.call.IsSettled():
		return d.done(tenon.RunCompleted, tenon.StopEnd, nil)
	case d.cancel != nil:
		return d.done(tenon.RunCancelled, tenon.StopCancelled, tenon.Errorf(tenon.CodeCancelled,
			"the call was cancelled"))
	}
	grant := d.spec.By // the caller allows this call, but not the calls that it starts
	if d.spec.Ask {
		grant = ""
	}
	return d.call.Next(CallContext{Tools: d.spec.Tools, Grant: grant, Inner: d.spec.Inner, Inputs: d.spec.Inputs,
		Debug: d.spec.Debug, Client: d.spec.Ask, Budgets: d.spec.Budgets})
}

func (d *Direct) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	used := d.call.Used()
	used.ToolCalls++
	end := &tenon.DoneData{State: state, Stop: stop, Error: err, Data: mustJSON(used)}
	return []tenon.Command{{Kind: tenon.CommandDone, Data: mustJSON(end), Local: end}}
}

var _ tenon.Core = (*Direct)(nil)
