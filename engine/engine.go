// Package engine defines how runs are driven: who keeps a run going, who wakes
// it and who may append to its journal. The logic of a run is a [tenon.Core];
// an Engine feeds it events and has its commands carried out by an executor
// that host injects. Neither knows the other's inside.
//
//	core.Next() ─► commands ─► Engine ─► Do (model call, decision, tool call)
//	    ▲                        │
//	    └──── core.Apply ◄── events, stored first
//
// The rules that every driver keeps, and that package enginetest checks:
//
//   - An attempt of a step is recorded as started before it begins. Steps that
//     must not be repeated and were in flight when their process died end as
//     unknown; the others are interrupted and run again with the same key.
//   - Only the owner of a run appends to its journal. The lease of an owner
//     ends when its process dies.
//   - A signal is taken once: the first for a step and kind wins, and whoever
//     comes later is handed the winning event.
//   - What is asked in the middle of a step is a waiting row as well; it expires
//     with its step, and with its process.
//   - A run that only waits is a row: no goroutine, no state in memory.
//   - Followers see an event after it is stored, in order, without gaps.
package engine

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/tenonhq/tenon"
)

// Spec is what a run starts from. It is stored as the data of the run's first
// event, so a core can be made again from the journal alone.
type Spec struct {
	Run  tenon.Run       `json:"run"`  // the row as it begins: id, session, parent, core, agent, title
	Data json.RawMessage `json:"data"` // for the core
	// Blobs are put into the store together with the first event. They are what
	// Data names by digest, and no part of the journal. Uses are the digests of
	// such blobs that are stored already; Start is not_found where one is not.
	Blobs [][]byte `json:"-"`
	Uses  []string `json:"-"`
	// Fresh says that the id was made for this run, so that nobody has to look
	// whether there is such a run. If there is one, Start ends with conflict.
	Fresh bool `json:"-"`
}

// NewCore makes the core of a run from its spec. It may read the journals of
// the run's ancestors. The core is then fed every event of the journal, the
// first one (EventRun) included.
type NewCore func(ctx context.Context, spec Spec) (tenon.Core, error)

// Do carries out one command and returns the events that record what happened,
// at least one of them for the command's step. They are stored together.
// Engines fill in Run, Seq, Time and Attempt. Emit publishes a live event (a
// token delta, a progress notice) to the followers of the run; it is not stored
// and never blocks.
//
// A Do whose command is not idempotent is called at most once for each attempt.
// An error means that nothing is known about the step: the run stays as it is
// and can be resumed. When ctx ends (the run was cancelled or the engine is
// closing) and the outcome is not known, Do returns an error; events that it
// returns are recorded in any case.
type Do func(ctx context.Context, run string, c Attempt, emit func(tenon.Event)) ([]tenon.Event, error)

// Attempt is a command together with the number of this attempt, from 1.
type Attempt struct {
	tenon.Command
	Attempt int
	Row     tenon.Run // the run's, as it began: its session, its principal, who called it
	// Journal records what comes up while the attempt is under way. Nil for a
	// command that is decided in place.
	Journal Journal
}

// Signal is something that is told to a run from outside: a decision about a
// tool call, an answer to a question, a message. It becomes an event of the
// run's journal.
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
	Caller    string // only runs that this one called
	Top       bool   // only runs that no run called
	Prefix    string // of the id
	// Resumable selects runs in state working that no process works on.
	Resumable bool
	Before    string // only runs with an id below this one: paging, newest first
	Limit     int    // 0 means 100
}

// Engine drives runs. Implementations are safe for concurrent use, by many
// goroutines and by many processes on one store.
type Engine interface {
	// Start begins a run, or goes on with one that has no owner. It returns as
	// soon as the run's first event is stored; the run goes on until it ends,
	// waits, or the engine is closed. Starting a run that is being worked on, or
	// that has ended, does nothing. A zero Spec.Data means: only go on.
	// Errors: invalid (no id), not_found, conflict (the session is at work on
	// another run, or a fresh run exists), store, and what NewCore returns.
	Start(ctx context.Context, spec Spec) error
	// Signal records a signal and returns the event that won: the signal's own,
	// or the earlier event for the same step and kind, whose data then says who
	// was first. If no process works on the run, the signal is stored and the
	// run stays at rest until Start. A signal of kind retry wakes a run that has
	// failed. Errors: invalid (no id or kind), not_found, conflict (the run has
	// ended, or does not wait for this step), store.
	Signal(ctx context.Context, run string, s Signal) (tenon.Event, error)
	// Cancel asks a run to end and returns when that is stored. A run that nobody
	// works on is ended at once. Cancelling a run that has ended does nothing.
	Cancel(ctx context.Context, run, reason string) error
	// Events yields the stored events after the given number and then follows:
	// live events and new ones as they are stored. It ends after the run's last
	// event, when the run comes to rest waiting (after a live event of kind
	// EventWaiting), with an error where this engine had to give the run up (what
	// Do returned, or code cancelled after Close), or with ctx. A follower that is
	// too slow misses live events, never stored ones.
	Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error]
	// List returns runs, newest first.
	List(ctx context.Context, f Filter) ([]tenon.Run, error)
	// Close stops working on runs, within a short grace; they can be resumed.
	Close() error
}

// CommandDecide is the kind of a command that is decided in place, such as a
// policy's verdict: Do must return at once without a side effect, so the engine
// calls it inline, records no start and stores its events with the next ones.
const CommandDecide = "decide"

// LiveDelta and LiveReset are the kinds of live event that an engine remembers
// for followers that join in the middle of a step: the data of a delta is a
// Delta; a reset voids the step's text so far.
const (
	LiveDelta = "delta"
	LiveReset = "reset"
)

// Delta is the data of a [LiveDelta].
type Delta struct {
	Kind string `json:"kind"` // text or thinking; other kinds are not remembered
	Text string `json:"text"`
}

// EventWaiting is the kind of the live event that tells followers that the run
// has come to rest and waits for a signal. Its data is a []tenon.Waiting.
const EventWaiting = "waiting"

// Clock tells the time and waits, so that tests can use a time of their own.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}
