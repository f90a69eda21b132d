package tenon

import (
	"encoding/json"
	"time"
)

// Event is one entry of a run's journal. Seq counts from 1 without gaps. An event with Seq 0 is a live event
// (a token delta, a progress notification), which is never stored.
type Event struct {
	Run     string          `json:"run"`
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Step    string          `json:"step,omitempty"` // "turn" for a model call, "turn.index" for a tool call
	Kind    string          `json:"kind"`
	Attempt int             `json:"attempt,omitempty"` // from 1
	Data    json.RawMessage `json:"data,omitempty"`
	// Local is a pointer to the decoded data, for cores and observers in the same process, which then need not
	// decode Data. It is immutable and never stored. It is nil for events that were read from a store.
	Local any `json:"-"`
}

// The kinds of event that every engine writes and every core handles. Cores define further kinds.
const (
	EventRun         = "run"         // first event of every journal; data: the spec
	EventStarted     = "started"     // an attempt of a step begins; data: StartedData
	EventUnknown     = "unknown"     // the process died during a step that must not be repeated; data: UnknownData
	EventInterrupted = "interrupted" // a step that will be repeated was stopped; cores define the data
	EventCancel      = "cancel"      // a caller asked to stop the run; data: CancelData
	EventDone        = "done"        // the run ended; data: DoneData
	EventQuestion    = "question"    // a question during a step; its own step is "STEP/…"
	EventExpired     = "expired"     // the wait of a step was not answered in time; data: ExpiredData or none
	EventRetry       = "retry"       // a caller resumed a failed run; the only event after done
)

// StartedData is the data of an [EventStarted].
type StartedData struct {
	Kind       string `json:"kind"` // the command's kind
	Idempotent bool   `json:"idempotent,omitempty"`
}

// ExpiredData is the data of an [EventExpired].
type ExpiredData struct {
	Reason string `json:"reason,omitempty"`
}

// UnknownData is the data of an [EventUnknown] if the reason is known. Cores may write additional members.
type UnknownData struct {
	Error *Error `json:"error,omitempty"`
}

// CancelData is the data of an [EventCancel].
type CancelData struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Withdraw also withdraws the messages of persons that no model call has sent. No later run sends them.
	Withdraw bool `json:"withdraw,omitempty"`
}

// DoneData is the data of an [EventDone]. It describes how the run ended.
type DoneData struct {
	State  RunState        `json:"state"`
	Stop   StopReason      `json:"stop_reason"`
	Answer string          `json:"answer,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"` // summary of the core
}

// EventData encodes a value as the data of an event. Raw JSON in the value must be valid. It was checked when it was
// received. If the value cannot be encoded, EventData returns the error as JSON, {"error": …}. Kinds of events that can
// contain an error decode this form.
func EventData(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]*Error{"error": Errorf(CodeInternal, "this event could not be written: %w",
			err)})
	}
	return b
}

// Command is work that a [Core] requests. Next returns the same command (same step and kind) until an event
// of that step is applied.
type Command struct {
	Step       string
	Kind       string
	Idempotent bool          // a repeat is safe
	After      time.Duration // minimum delay since the step's last event
	Data       json.RawMessage
	// Local passes data to an executor in the same process, which then need not decode Data or fold the
	// journal. For each kind, the core documents whether Local accompanies Data or replaces it. Local is
	// immutable and never stored. It is nil if the command came from another process.
	Local any
}

// CommandData returns the data of a command: Local if it is a *T, otherwise the decoded Data. Errors:
// internal.
func CommandData[T any](c Command) (*T, error) {
	if v, ok := c.Local.(*T); ok {
		return v, nil
	}
	v := new(T)
	if err := json.Unmarshal(c.Data, v); err != nil {
		return nil, Errorf(CodeInternal, "step %s: the command %s cannot be read: %w", c.Step, c.Kind, err)
	}
	return v, nil
}

// The kinds of command that an engine executes itself. It passes all other kinds to its executor.
const (
	// CommandWait waits for a signal for the step. Data describes the expected signal. If After is set, it limits the
	// wait. When that time is over, the engine records an [EventExpired], at the latest when it next examines the run.
	CommandWait = "wait"
	CommandDone = "done" // the run has ended; data: DoneData
)

// Core is the pure logic of a run: an agent or a workflow. It uses no clock, no I/O and no goroutines, so the
// same events always result in the same commands. It is not safe for concurrent use.
type Core interface {
	// Apply folds one event into the state. An error means that the event does not belong to a journal of
	// this core; the run cannot continue.
	Apply(Event) error
	// Next returns the next commands in a stable order. If it returns none while no command is in flight, the
	// run is stuck, which is a defect.
	Next() []Command
}
