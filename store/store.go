// Package store defines what tenon keeps: journals, the rows about runs and
// sessions, signals on their way to a run, blobs, what people allowed for good,
// and what was spent. The journal is the truth; rows are there to be listed and
// are written in the same transaction as the events that change them.
//
// Several processes may have one store open. Only the owner of a run appends to
// its journal; UNIQUE(run, seq) is the last fence. What a caller was told is
// stored is on disk: a write returns after its commit, and the implementation
// groups the commits of concurrent callers.
//
// Package storetest is the suite that every implementation passes.
package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// Append is one atomic write to a run.
type Append struct {
	// Create is the run's row, for its first append only. It fails with conflict
	// if the run exists, or if Exclusive is set and the session has another run
	// that has not ended. Runs with a Caller are a part of that run: they are
	// never in the way, nothing is in theirs, and the session neither counts them
	// nor has them for its head.
	Create    *tenon.Run
	Exclusive bool
	// Blobs and Uses are for Create only: what the run needs beside its events
	// (see [Blobs]), and the digests of such blobs that are stored already. One
	// that is not (no more, if its last run was deleted) is not_found.
	Blobs [][]byte
	Uses  []string

	Run    string
	Events []tenon.Event // Seq consecutive from the last one; time set; may be empty
	// State, Stop and Waiting are the run's row after the append. With a zero
	// State the row stays as it is, which is cheaper: only set what changes.
	State   tenon.RunState
	Stop    tenon.StopReason
	Waiting []tenon.Waiting
	// Taken settles the signals that the events came from: id → Seq.
	Taken map[string]uint64
}

// Store is everything that a store keeps.
type Store interface {
	Journal
	Inbox
	Sessions
	Blobs
	Grants
	Budgets
	Results
	Rates
	Pins
	Texts
	Leases
	// Close waits for writes under way and closes the store.
	Close() error
}

// Journal keeps runs and their events.
type Journal interface {
	// Append stores the events or nothing. Errors: conflict (the events do not
	// follow the last one, the run exists, the session is busy, the run was
	// imported), not_found, store
	// (disk full, read-only, damaged: nothing was stored), cancelled (ctx ended
	// before the write began: nothing was stored).
	//
	// An append that creates a run makes it the head of its session, whose row is
	// inserted if it is missing. Event data of any size and any bytes comes back
	// as it was given.
	Append(ctx context.Context, a Append) error
	// Events returns up to limit events after the given number, in order; limit
	// 0 means all. Errors: not_found.
	Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error)
	// Run returns the row of a run. Errors: not_found.
	Run(ctx context.Context, id string) (tenon.Run, error)
	// Runs returns rows, newest first.
	Runs(ctx context.Context, f RunFilter) ([]tenon.Run, error)
}

// RunFilter selects runs. Zero fields select all.
type RunFilter struct {
	Session   string
	Principal tenon.Principal
	State     tenon.RunState
	Parent    string
	Caller    string // only runs that this one called
	Top       bool   // only runs that no run called
	Prefix    string // of the id
	Before    string // ids below this one
	Limit     int    // 0 means 100
	// Except leaves out the runs of which it returns true. It is asked with the id before
	// more of a row is read, and must not use the store.
	Except func(id string) bool
}

// Signal is a signal on its way to the owner of a run.
type Signal struct {
	ID   string
	Run  string
	Kind string
	Step string
	By   string
	Data json.RawMessage
	Time time.Time
	Seq  uint64 // of the event that settled it; 0 while it waits
}

// Inbox holds signals until the owner of the run has made events of them.
type Inbox interface {
	// PutSignal stores a signal. One with the same id is kept as it is and
	// returned, so that sending twice does no harm. Errors: not_found (the run).
	PutSignal(ctx context.Context, s Signal) (Signal, error)
	// Signals returns the signals of a run that still wait, oldest first; of all
	// runs where run is empty.
	Signals(ctx context.Context, run string) ([]Signal, error)
	// Signal returns one signal, to see whether it was taken. Errors: not_found.
	Signal(ctx context.Context, id string) (Signal, error)
	// Settled returns the signal that won for a step and kind: the one whose event,
	// of this step and kind, has the highest Seq. Errors: not_found.
	Settled(ctx context.Context, run, step, kind string) (Signal, error)
	// SettleSignal marks a signal that still waits as answered by an event that is
	// there already. Errors: not_found.
	SettleSignal(ctx context.Context, id string, seq uint64) error
}

// Sessions keeps conversations.
type Sessions interface {
	// PutSession inserts a session's row or replaces all of it but Runs, which the
	// store counts.
	PutSession(ctx context.Context, s tenon.Session) error
	// Session returns one by id. Errors: not_found.
	Session(ctx context.Context, id string) (tenon.Session, error)
	// Sessions returns rows, most recently updated first. Errors: not_found (the
	// session of Before).
	Sessions(ctx context.Context, f SessionFilter) ([]tenon.Session, error)
	// DeleteSession deletes a session with its runs, those that they called
	// included: events, signals, texts, reservations, the blobs that no other run
	// has, and the budgets whose keys begin with "session/" and its id and "/". It
	// is all or nothing, and afterwards the store's files hold nothing of it;
	// copies of them, such as the backup before a migration, are not looked at.
	// Errors: not_found, conflict (one of its runs is worked on, another session was
	// forked from it or continues one of its runs), store.
	DeleteSession(ctx context.Context, id string) error
	// ImportSession stores what a file holds of a conversation: all of it or
	// nothing. Nothing else of the store changes. Errors: conflict (one of the
	// sessions or runs exists), invalid (a run without the mark, without a session,
	// with events that are not numbered from 1, or with a blob that is not among
	// Blobs), store, cancelled.
	ImportSession(ctx context.Context, i Import) error
}

// Import is a conversation that comes from a file. What it says about its journals
// is not looked at: whoever makes one has held it to the rules.
type Import struct {
	// Sessions are their rows as they are to be, except for Runs, which the store
	// counts.
	Sessions []tenon.Session
	// Runs are whole journals, in any order.
	Runs []ImportedRun
	// Blobs are what Runs name by digest.
	Blobs [][]byte
}

// ImportedRun is one run of an [Import].
type ImportedRun struct {
	Run    tenon.Run // with the mark, see [tenon.Imported]; it has ended
	Events []tenon.Event
	Uses   []string // digests of its blobs
}

// SessionFilter selects sessions. Zero fields select all.
type SessionFilter struct {
	Principal     tenon.Principal
	Parent        string    // only those forked from this session
	Prefix        string    // of the id
	UpdatedBefore time.Time // only those that nothing has changed since, their import included
	Before        string    // the id of a session: only those that come after it in the list (paging)
	Limit         int       // 0 means 100
}

// Blobs keeps large values by the digest of their content, equal ones once. A
// blob belongs to the runs that it was stored for, and stays until the last of
// them is deleted.
type Blobs interface {
	// PutBlob stores data for a run and returns "sha256:" and its hex digest.
	// Errors: not_found (the run).
	PutBlob(ctx context.Context, run string, data []byte) (digest string, err error)
	// Blob returns the data. Errors: not_found, store (the content does not
	// match its digest).
	Blob(ctx context.Context, digest string) ([]byte, error)
}

// Leases says who works on a run. A lease belongs to one process and is freed
// by the operating system when that process dies.
type Leases interface {
	// Acquire takes the lease of a run, or returns ok false (almost) at once if
	// somebody has it, this process included. Release may be called once.
	Acquire(run string) (release func(), ok bool, err error)
	// Held reports whether somebody has the lease of a run.
	Held(run string) (bool, error)
	// Changed returns a channel that is closed at the next change of the store:
	// at once for one by this process, within 50 ms for one by another. Ask for
	// the channel first and look at the store then. Nobody watches the store for
	// a caller whose ctx has ended.
	Changed(ctx context.Context) <-chan struct{}
}
