package tenon

import (
	"encoding/json"
	"time"
)

// Event is one entry of a run's journal. Seq counts from 1 without gaps; an
// event with Seq 0 is live only (a token delta, a progress notice) and was
// never stored.
type Event struct {
	Run     string          `json:"run"`
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Step    string          `json:"step,omitempty"` // "turn" for a model call, "turn.index" for a tool call
	Kind    string          `json:"kind"`
	Attempt int             `json:"attempt,omitempty"` // 1 for the first
	Data    json.RawMessage `json:"data,omitempty"`
}

// The kinds of event that every engine writes and every core understands. The
// cores add their own.
const (
	EventRun         = "run"         // first of every journal: the spec
	EventStarted     = "started"     // an attempt of a step begins; data: StartedData
	EventUnknown     = "unknown"     // a step that must not be repeated was in flight when its process died
	EventInterrupted = "interrupted" // the same for a step that may be repeated: it will be
	EventCancel      = "cancel"      // somebody asked to stop the run; data: CancelData
	EventDone        = "done"        // how the run ended; data: DoneData
	EventQuestion    = "question"    // something is asked while a step is under way; of a step of its own, "STEP/…"
	EventExpired     = "expired"     // nobody answered what a step waited for in time; data: ExpiredData, or none
	EventRetry       = "retry"       // somebody goes on with a run that had failed; the only event after done
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

// CancelData is the data of an [EventCancel].
type CancelData struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// DoneData is the data of an [EventDone]: how the run ended.
type DoneData struct {
	State  RunState        `json:"state"`
	Stop   StopReason      `json:"stop_reason"`
	Answer string          `json:"answer,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"` // the core's own summary
}

// Command is something that a [Core] wants done. The same command (same step
// and kind) is named by Next until an event about it is applied.
type Command struct {
	Step       string
	Kind       string
	Idempotent bool          // a repeat is safe
	After      time.Duration // not before this much time has passed since the step's last event
	Data       json.RawMessage
	// Local is handed to an executor in the same process, so that it need neither
	// decode Data nor fold the journal again: the core says with each kind whether
	// Local stands beside Data, or in its place until the command goes over a wire.
	// It is immutable, never stored, and nil where the command came over a wire.
	Local any
}

// CommandData is what a command says: its Local, where that is a *T, else its Data
// decoded. Errors: internal.
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

// The kinds of command that an engine itself carries out. All other kinds go
// to its executor.
const (
	// CommandWait says that there is nothing to do for this step until a signal
	// comes; Data says what is awaited. With After, it is awaited only so long: then
	// the engine records an [EventExpired] for the step, at the latest when somebody
	// next looks after the run.
	CommandWait = "wait"
	CommandDone = "done" // the run has ended; Data is a DoneData
)

// Core is the pure logic of a run: an agent or a workflow. It has no clock, does
// no I/O and starts no goroutine, so that the same events always lead to the
// same commands. It is not safe for concurrent use.
type Core interface {
	// Apply folds one event into the state. An error means that the journal is
	// not one of this core's: the run cannot go on.
	Apply(Event) error
	// Next returns what is to be done now, in a stable order. No command at all
	// while none is under way would be a stuck run, which is a defect.
	Next() []Command
}
