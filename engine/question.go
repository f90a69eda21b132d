package engine

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Journal records events during an attempt, such as a question of a server during a tool call. Each such
// event has its own step, which begins with the attempt's step and "/". A Journal is safe for concurrent use.
// After the attempt has ended, it returns conflict.
type Journal interface {
	// Record stores events of steps within the attempt's step, and returns when they are stored. Errors: conflict,
	// store, cancelled, and the errors of the core.
	Record(ctx context.Context, events ...tenon.Event) error
	// Ask stores an event of kind [tenon.EventQuestion], waits for the event that ends the question, and
	// returns it. That is the next event of the same step, from any sender. If the core returns a wait for
	// the step, the run's row lists it during the attempt, and any process can answer with a signal. If ctx
	// ends first, the question is recorded as expired. Errors: the errors of Record, or the cause of ctx.
	//
	// A question expires when its attempt ends or its process dies.
	Ask(ctx context.Context, question tenon.Event) (tenon.Event, error)
}
