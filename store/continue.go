package store

import (
	"errors"
	"fmt"

	"github.com/tenonhq/tenon"
)

// ErrContinued is in the chain of the error of an exclusive [Append] that would begin a run behind an earlier end of
// its session than the current one. The session is free: its row can be read again, and another run begun.
var ErrContinued = errors.New("another run has continued it since it was read; ask again")

// ErrAtWork is in the chain of the error of [ErrBusy].
var ErrAtWork = errors.New("another run of the session is at work")

// ErrBusy returns the error for an exclusive run whose session is at work on another run.
func ErrBusy(session, run string) error {
	return &tenon.Error{Code: tenon.CodeConflict, Err: ErrAtWork, Message: fmt.Sprintf(
		"session %s is at work on run %s; wait for its end, ask in a fork: tenon run -s %s --fork, or cancel "+
			"it: tenon runs cancel %s", session, run, session, run)}
}

// Continues returns an error if a new run does not continue its session at its end. head and headSeq are in the row of
// the session, and last is the number of head's last event. A session without a head can begin in any way. Errors:
// conflict, with [ErrContinued] in its chain.
func Continues(r *tenon.Run, head string, headSeq, last uint64) error {
	if headSeq == 0 {
		headSeq = last
	}
	if head == "" || r.Parent == head && r.ParentSeq == headSeq {
		return nil
	}
	return tenon.Errorf(tenon.CodeConflict, "session %s: %w", r.Session, ErrContinued)
}
