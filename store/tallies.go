package store

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Tallies keep a summary of each run, so that statistics do not read journals. A summary is derived from the journal
// and may lag behind. The store knows the runs whose summaries are missing or out of date: every run from its beginning
// until it has ended and is counted, and again after it was resumed.
//
//	Uncounted ─► Events of each ─► PutTallies ─► Tallies
type Tallies interface {
	// Uncounted returns up to limit runs whose summary is missing or out of date, newest first, and the number of all
	// such runs. If ended is set, it returns and counts only runs that have ended. Limit 0 means 100; a negative one
	// returns only the number.
	Uncounted(ctx context.Context, ended bool, limit int) (runs []tenon.Run, total int, err error)
	// PutTallies replaces the summaries of runs, all in one transaction. A tally without data removes the summary. A
	// run that has ended counts as up to date if Seq is its last event. Runs that are gone are skipped.
	PutTallies(ctx context.Context, list []Tally) error
	// Tallies calls each with the stored summaries, the newest runs first, and returns its first error. It leaves out
	// summaries that somebody else wrote. The call must not use the store and must not keep Data.
	Tallies(ctx context.Context, each func(Tally) error) error
}

// Tally is the summary of a run. The store does not interpret Data.
type Tally struct {
	Run  string
	Seq  uint64 // number of the last event that it contains
	Data []byte
}
