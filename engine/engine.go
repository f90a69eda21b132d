// Package engine defines how runs are driven: which process works on a run, what wakes it, and who may append
// to its journal. The logic of a run is a [tenon.Core]. An Engine feeds it events, and passes its commands to
// an executor that package host provides. Core and executor do not depend on each other.
//
//	core.Next() ─► commands ─► Engine ─► Do (model call, decision, tool call)
//	    ▲                        │
//	    └──── core.Apply ◄── events, stored first
//
// Every implementation follows these rules, and package enginetest checks them:
//
//   - An attempt of a step is recorded as started before it begins. If the process dies during an attempt, a step that
//     must not be repeated ends as unknown. Any other step is interrupted and runs again with the same key.
//   - Only the owner of a run appends to its journal. The owner's lease ends when its process dies.
//   - The first signal for a step and kind wins. Senders of later signals get the winning event.
//   - A question asked during a step is listed as a wait in the run's row. It expires with its step and with its
//     process.
//   - A run that only waits is a row in the store: it uses no goroutine and no memory.
//   - Followers receive each event after it is stored, in order and without gaps.
package engine

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/tenonhq/tenon"
)

// Spec is the start state of a run. It is stored as the data of the run's first event, so that a core can be
// rebuilt from only the journal.
type Spec struct {
	Run  tenon.Run       `json:"run"`  // the initial row: id, session, parent, core, agent, title
	Data json.RawMessage `json:"data"` // input of the core
	// Blobs are stored together with the first event. Data refers to them by digest; they are not part of the
	// journal. Uses lists the digests of already stored blobs. If one is missing, Start returns not_found.
	Blobs [][]byte `json:"-"`
	Uses  []string `json:"-"`
	// Late, if set, stores data of the run that is too large for Blobs. An engine does not call it, but it stores the
	// run before it begins a step. The caller of Start calls Late after Start has returned, and holds the steps of the
	// run until then.
	Late func(ctx context.Context, run string) error `json:"-"`
	// Fresh reports that the id was created for this run, so that the engine need not look it up. If the run
	// exists, Start returns conflict.
	Fresh bool `json:"-"`
}

// Encode returns the data of the first event of the run, as [ReadSpec] reads it. Data must be JSON; it is not checked.
// Errors: Run cannot be encoded.
func (s *Spec) Encode() (json.RawMessage, error) {
	run, err := json.Marshal(s.Run)
	if err != nil {
		return nil, err
	}
	data := s.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	b := make([]byte, 0, len(run)+len(data)+len(`{"run":,"data":}`))
	b = append(append(append(b, `{"run":`...), run...), `,"data":`...)
	return append(append(b, data...), '}'), nil
}

// NewCore builds the core of a run from its spec. It may read the journals of the run's ancestors. The core
// then receives every event of the journal, including the first (EventRun).
type NewCore func(ctx context.Context, spec Spec) (tenon.Core, error)

// Do executes one command and returns the events that record the outcome, at least one of them for the
// command's step. They are stored together. The engine sets Run, Seq, Time and Attempt. Emit publishes a live
// event (a token delta, a progress notification) to the followers of the run. It never blocks, and the event
// is not stored.
//
// If a command is not idempotent, Do is called at most once for each attempt. An error means that the outcome
// of the step is unknown: the run stays as it is and can be resumed. If ctx ends (the run was cancelled or
// the engine is closing) and the outcome is unknown, Do returns an error. Returned events are always
// recorded.
type Do func(ctx context.Context, run string, c Attempt, emit func(tenon.Event)) ([]tenon.Event, error)

// Attempt is a command with the number of the attempt, starting at 1.
type Attempt struct {
	tenon.Command
	Attempt int
	Row     tenon.Run // the initial row of the run: session, principal, caller
	// Journal records events during the attempt. It is nil for a command that is decided in place.
	Journal Journal
}

// Signal is input to a run from outside: a decision about a tool call, an answer to a question, a message. It
// becomes an event in the run's journal.
type Signal struct {
	ID   string          `json:"id"`   // idempotency key of the sender; required
	Kind string          `json:"kind"` // becomes the event's kind
	Step string          `json:"step,omitempty"`
	By   string          `json:"by,omitempty"`
	Data json.RawMessage `json:"data,omitempty"` // becomes the event's data
}

// Filter selects runs for [Engine.List]. Zero fields select all.
type Filter struct {
	Session   string
	Principal tenon.Principal
	State     tenon.RunState
	Parent    string
	Caller    string // only runs called by this run
	Top       bool   // only runs without a caller
	Prefix    string // prefix of the id
	// Resumable selects runs in state working that no process is working on.
	Resumable bool
	// Expired selects runs in state input_required of which a wait has expired at this time. It may select others of
	// this state, too: their waits must be looked at.
	Expired time.Time
	Before  string // only runs with a smaller id; for paging, newest first
	Limit   int    // 0 means 100
}

// Engine drives runs. Implementations are safe for concurrent use, by many
// goroutines and by many processes on one store.
type Engine interface {
	// Start begins a run, or resumes one without an owner. It returns as soon as the run's first event is
	// stored. The run continues until it ends, waits, or the engine is closed. If a process is working on the
	// run or the run has ended, Start does nothing. If Spec.Data is empty, Start only resumes. Errors:
	// invalid (no id), not_found, conflict (the session is busy with another run, or a fresh run exists),
	// store, and the errors of NewCore.
	Start(ctx context.Context, spec Spec) error
	// Signal records a signal and returns the winning event: its own, or the earlier event for the same step
	// and kind, whose data names the earlier sender. If no process works on the run, the signal is stored and
	// the run stays at rest until Start. A signal of kind retry wakes a failed run. Errors: invalid (no id or
	// kind), not_found, conflict (the run has ended or does not wait for this step), store.
	Signal(ctx context.Context, run string, s Signal) (tenon.Event, error)
	// Cancel requests the end of a run and returns when the request is stored. If no process works on the
	// run, it ends at once. Cancelling an ended run does nothing.
	Cancel(ctx context.Context, run, reason string) error
	// Events yields the stored events after the given number, and then new events as they are stored and live
	// events. It ends after the run's last event, when the run waits (after a live event of kind
	// EventWaiting), or with ctx. It ends with an error if this engine stopped working on the run: the error
	// of Do, or code cancelled after Close. A follower that is too slow misses live events, but never stored
	// ones.
	Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error]
	// List returns runs, newest first.
	List(ctx context.Context, f Filter) ([]tenon.Run, error)
	// Close stops working on runs, after a short grace period. They can be resumed.
	Close() error
}

// CommandDecide is the kind of a command that is decided in place, such as a policy verdict. Do must return
// at once and without side effects. The engine calls it inline, records no start, and stores its events with
// the next ones.
const CommandDecide = "decide"

// LiveDelta and LiveReset are the kinds of live event that an engine keeps for followers that join during a
// step. The data of a delta is a [Delta]. A reset discards the text of the step so far.
const (
	LiveDelta = "delta"
	LiveReset = "reset"
)

// Delta is the data of a [LiveDelta].
type Delta struct {
	Kind string `json:"kind"` // text or thinking; other kinds are not kept
	Text string `json:"text"`
}

// EventWaiting is the kind of the live event which reports that the run is at rest and waits for a signal.
// Its data is a []tenon.Waiting.
const EventWaiting = "waiting"

// Clock returns the time and creates timers. Tests replace it.
type Clock interface {
	Now() time.Time
	// Elapsed returns the time since a fixed moment. It never jumps: unlike the result of Now, it does not change when
	// somebody sets the clock.
	Elapsed() time.Duration
	After(d time.Duration) <-chan time.Time
}

// ReadSpec reads the spec from the first event of a journal. Errors: store (there is none).
func ReadSpec(run string, events []tenon.Event) (Spec, error) {
	var spec Spec
	if len(events) == 0 || events[0].Kind != tenon.EventRun {
		return spec, tenon.Errorf(tenon.CodeStore, "run %s has no first event; the journal is damaged", run)
	}
	if err := json.Unmarshal(events[0].Data, &spec); err != nil {
		return spec, tenon.Errorf(tenon.CodeStore, "run %s: its spec cannot be read: %w", run, err)
	}
	return spec, nil
}
