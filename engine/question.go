package engine

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Journal is how an executor records what comes up within an attempt that is
// under way, such as a question of a server in the middle of a tool call. What
// comes up has a step of its own, which begins with the attempt's step and "/".
// A Journal is safe for concurrent use, and refuses everything with code conflict
// once its attempt has ended.
type Journal interface {
	// Record stores events of such steps and returns when they are stored. Errors:
	// conflict, store, cancelled, and what the core says.
	Record(ctx context.Context, events ...tenon.Event) error
	// Ask stores an event of kind [tenon.EventQuestion] and waits for the event
	// that ends the question, which it returns: the next one of the same step,
	// whoever sent it. If the core names a wait for the step, the run's row shows
	// it while the attempt goes on, and any process can answer with a signal.
	// When ctx ends first, the question is recorded as expired. Errors: those of
	// Record, or ctx's cause.
	//
	// A question whose attempt ends, or whose process dies, expires.
	Ask(ctx context.Context, question tenon.Event) (tenon.Event, error)
}
