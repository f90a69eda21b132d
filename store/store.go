// Package store defines what tenon stores: journals, the rows of runs and sessions, signals on their way to a run,
// blobs, permanent permissions, and spending. The journals are authoritative; rows exist for lists, and are written
// in the same transaction as the events that change them.
//
// Several processes may have one store open. Only the owner of a run appends to its journal, and UNIQUE(run, seq)
// refuses an append by any other process. A write returns after its commit is on disk. An implementation groups the
// commits of concurrent callers.
//
// Packages store/sqlite and store/postgres implement it, and store/sealed encrypts what they keep. Package storetest is
// the test suite that every implementation passes.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// Append is one atomic write to a run.
type Append struct {
	// Create is the run's row, for its first append only. It fails with conflict if the run exists. With Exclusive, it
	// also fails with conflict if the session has another run that has not ended, or if Parent and ParentSeq are not
	// the session's head and the head's last event in the session; see [ErrContinued].
	//
	// A run with a Caller is a part of that run: it blocks no run and is never blocked, and the session does not count
	// it or use it as its head.
	Create    *tenon.Run
	Exclusive bool
	// Blobs and Uses are for Create only. Blobs are data that the run needs besides its events (see [Blobs]). Uses are
	// the digests of such blobs that are already stored. If one of them is missing, also because its last run was
	// deleted, the error is not_found.
	Blobs [][]byte
	Uses  []string

	// Tally is the summary of the run up to its last event, see [Tally.Data]. It is for a Create with a State that has
	// ended. The run then counts as up to date.
	Tally []byte

	Run    string
	Events []tenon.Event // numbers follow the last event, and times are set; may be empty
	// State, Stop and Waiting are the run's row after the append. With a zero State the row stays unchanged, which is
	// cheaper: only set it if it changes.
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
	SessionGrants
	Budgets
	Results
	Rates
	Pins
	Texts
	Tallies
	Leases
	Owners
	Health
	// Close waits for writes under way and closes the store.
	Close() error
}

// Journal keeps runs and their events.
type Journal interface {
	// Append stores all events or none. Errors: conflict (the events do not follow the last one, the run exists, the
	// session is busy, the run was imported), not_found, store (disk full, read-only, damaged: nothing was stored),
	// cancelled (ctx ended before the write began: nothing was stored).
	//
	// An append that creates a run makes it the head of its session, whose row is inserted if it is missing. Event data
	// of any size and any bytes is returned unchanged.
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
	// Expired selects runs of state input_required of which a wait has expired at this time. The store may return
	// others of this state, too.
	Expired time.Time
	// Unheld selects runs that no process has the lease of. The store may return others, too.
	Unheld bool
	// Except selects runs to leave out. It is called with the id before the rest of the row is read, and must not use
	// the store.
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
	Seq  uint64 // number of the event that settled it; 0 while it waits
}

// Inbox keeps signals until the owner of the run has turned them into events.
type Inbox interface {
	// PutSignal stores a signal. If one with the same id exists, it stays and is returned, so that sending twice is
	// harmless. Errors: not_found (the run).
	PutSignal(ctx context.Context, s Signal) (Signal, error)
	// Signals returns the waiting signals of a run, oldest first; of all runs if run is empty.
	Signals(ctx context.Context, run string) ([]Signal, error)
	// Signal returns one signal, to see whether it was taken. Errors: not_found.
	Signal(ctx context.Context, id string) (Signal, error)
	// Settled returns the signal that won for a step and kind: the one whose event,
	// of this step and kind, has the highest Seq. Errors: not_found.
	Settled(ctx context.Context, run, step, kind string) (Signal, error)
	// SettleSignal marks a waiting signal as answered by an existing event. Errors: not_found.
	SettleSignal(ctx context.Context, id string, seq uint64) error
}

// Attempts records, outside of the store, attempts at allowed calls, so that an older copy of a store does not repeat
// them. It is optional for a store.
type Attempts interface {
	// Attempt records attempt n, from 1 on, at a step of a run. Fresh is false if it was recorded before.
	Attempt(ctx context.Context, run, step string, n int) (fresh bool, err error)
}

// Sessions keeps conversations.
type Sessions interface {
	// PutSession inserts a session's row, or replaces it except for Runs, which the store counts. Once the session has
	// runs, its Head and HeadSeq stay, too: a run may have begun since the row was read.
	PutSession(ctx context.Context, s tenon.Session) error
	// Session returns a session by its id. Errors: not_found.
	Session(ctx context.Context, id string) (tenon.Session, error)
	// Sessions returns rows, most recently updated first. Errors: not_found (the
	// session of Before).
	Sessions(ctx context.Context, f SessionFilter) ([]tenon.Session, error)
	// DeleteSession deletes a session with its runs and their child runs: events, signals, texts, reservations, blobs
	// that only these runs use, and budgets whose keys begin with "session/", its id and "/". It deletes all or
	// nothing. Afterwards the store's files contain no data of the session; copies of the files, such as the backup
	// before a migration, stay. Errors: not_found, conflict (one of its runs is working, another session was forked
	// from it or continues one of its runs), store.
	DeleteSession(ctx context.Context, id string) error
	// DeleteSessions deletes many sessions in the given order, each as DeleteSession does. It returns the deleted ones.
	// It leaves out sessions that DeleteSession would refuse, that are gone, or that have changed since Updated. Other
	// writes get their turn in between. The files are cleaned once, before it returns, also after an error. Progress
	// may be nil; it receives the number of deleted sessions so far. Errors: store, cancelled.
	DeleteSessions(ctx context.Context, list []tenon.Session, progress func(deleted int)) (gone []tenon.Session,
		err error)
	// ImportSession stores the conversation of a file, all or nothing, and changes nothing else. Errors: conflict (one
	// of the sessions or runs exists), invalid (a run without the mark or without a session, events that are not
	// numbered from 1, a blob that is not among Blobs), store, cancelled.
	ImportSession(ctx context.Context, i Import) error
}

// Import is a conversation from a file. The store does not check its journals; the caller must.
type Import struct {
	// Sessions are the rows of the sessions, except for Runs, which the store counts.
	Sessions []tenon.Session
	// Runs are whole journals, in any order.
	Runs []ImportedRun
	// Blobs are the data that Runs reference by digest.
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
	UpdatedBefore time.Time // only sessions without a later change or import
	Ended         bool      // only sessions whose runs have all ended
	Before        string    // the id of a session: only sessions after it in the list (paging)
	// BeforeAt is the time of the last change of that session when it was listed. With it, the next page is right even
	// if the session has changed since, or was deleted. If zero, the session's current time is used.
	BeforeAt time.Time
	Limit    int // 0 means 100
}

// Blobs keeps large values by the digest of their content, equal values once. A blob belongs to the runs for which it
// was stored, and is deleted with the last of them.
type Blobs interface {
	// PutBlob stores data for a run and returns "sha256:" and its hex digest.
	// Errors: not_found (the run).
	PutBlob(ctx context.Context, run string, data []byte) (digest string, err error)
	// Blob returns the data. Errors: not_found, store (the content does not
	// match its digest).
	Blob(ctx context.Context, digest string) ([]byte, error)
}

// Health reports whether a store works.
type Health interface {
	// Probe reports whether a new run can be stored now. It reads and writes the store, at most once a second; calls in
	// between return the last result. Errors: store (with what to do), cancelled.
	Probe(ctx context.Context) error
	// Usage returns the numbers that an operator watches.
	Usage() Usage
}

// Usage are the numbers of [Health].
type Usage struct {
	Free         int64  // bytes that are free on the store's disk; -1: unknown
	FailedWrites uint64 // writes of this process that the disk or SQLite refused
}

// Examiner is a store that can describe the properties of its database. Not every store is one.
type Examiner interface {
	// Examine returns one finding for each property that an operator can set.
	Examine(ctx context.Context) []Finding
}

// Finding is a property of a database.
type Finding struct {
	Name   string // name of the property, for example "tls"
	Text   string
	Remedy string // what to do; "" means that nothing is wrong
	Err    error  // the store does not work with the property, or the property cannot be determined
}

// Leases records which process works on a run. A lease belongs to one process. The operating system releases it when
// the process dies.
type Leases interface {
	// Acquire takes the lease of a run. If somebody has it, this process included, it returns ok false almost at once.
	// Release may be called once.
	Acquire(run string) (release func(), ok bool, err error)
	// Held reports whether any process has the lease of a run.
	Held(run string) (bool, error)
	// Changed returns a channel that is closed at the next change of the store: at once for a change by this process,
	// within 50 ms for another process. Request the channel before reading the store. A caller whose ctx has ended is
	// not notified.
	Changed(ctx context.Context) <-chan struct{}
}

// LeaseSets is a store that looks at many leases at once. Not every store is one; see [HeldOf].
type LeaseSets interface {
	// HeldOf reports which of the runs any process has the lease of. A run without a lease may be missing in the map.
	HeldOf(runs []string) (held map[string]bool, err error)
}

// Fleet is a store that knows how many processes search it for runs that nobody works on. Not every store is one.
type Fleet interface {
	// Enlist counts this process as one that searches, until leave is called.
	Enlist() (leave func())
	// Size returns the number of processes that search and renew their leases, as of the last heartbeat of this one. It
	// is at least 1.
	Size() int
}

// HeldOf reports which of the runs any process has the lease of. It asks at once if the store is a [LeaseSets], else
// for each run.
func HeldOf(s Leases, runs []string) (held map[string]bool, err error) {
	if all, ok := s.(LeaseSets); ok {
		return all.HeldOf(runs)
	}
	held = make(map[string]bool, len(runs))
	for _, run := range runs {
		if held[run], err = s.Held(run); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// LeaseHolders is a store that can name the process with a lease. Not every store is one.
type LeaseHolders interface {
	// Holder returns the id of the process that has the lease of a run, or 0 if it is unknown or there is none. It
	// may read what the system knows of many processes, so it is for messages to people.
	Holder(run string) (pid int)
}

// Digest returns the digest by which [Blobs] knows data: "sha256:" and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
