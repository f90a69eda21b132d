package store

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Rows that can cause an effect carry a MAC of the user who wrote them; see package store/signed. A row without a valid
// MAC is foreign. Foreign grants and runs are marked. Foreign pins, results and signals are left out. A foreign session
// is marked, and left out of the sessions of a principal.

// OwnOnly returns a context under which a store returns only own runs: a foreign run, or a journal that somebody else
// has changed, is an error with code waiting. Lists mark foreign runs under any context. Callers that act on a journal
// read it under such a context.
func OwnOnly(ctx context.Context) context.Context { return context.WithValue(ctx, ownOnly{}, true) }

// IsOwnOnly reports whether a context comes from [OwnOnly].
func IsOwnOnly(ctx context.Context) bool { return ctx.Value(ownOnly{}) != nil }

type ownOnly struct{}

// ErrForeign returns the error for a foreign run.
func ErrForeign(run string) error {
	return tenon.Errorf(tenon.CodeWaiting,
		"run %s was written by somebody else: it carries no valid mark of yours, so nothing of it is run; "+
			"look at it with 'tenon store show', and adopt it with 'tenon store adopt'", run)
}

// Owners finds foreign rows, and signs them as rows of the user.
type Owners interface {
	// Foreign returns the rows that are foreign. It reads the whole store.
	Foreign(ctx context.Context) (Foreign, error)
	// Adopt signs all foreign rows, in one transaction. seen is the digest of the rows that the user reviewed.
	// Errors: conflict (the rows changed since the review), too_large (more than [MaxForeign] rows of a kind that must
	// be reviewed), store.
	Adopt(ctx context.Context, seen string) error
}

// MaxForeign bounds each list of [Foreign].
const MaxForeign = 1000

// Foreign describes the rows of a store that its user did not write. Counts include all rows; lists contain up to
// [MaxForeign].
type Foreign struct {
	Runs, Events, Signals, Results, Pins, Grants, Sessions int

	Unended []tenon.Run    // the runs that would continue or wait; oldest first
	Open    []Signal       // the signals that a run would receive; oldest first
	Pinned  map[string]int // server → number of its pinned definitions
	Granted []Grant
	// Digest identifies these rows and their contents.
	Digest string
	// TooMany says that a list is incomplete.
	TooMany bool
}

// IsEmpty reports whether all rows are the user's own.
func (f *Foreign) IsEmpty() bool {
	return f.Runs+f.Events+f.Signals+f.Results+f.Pins+f.Grants+f.Sessions == 0
}
