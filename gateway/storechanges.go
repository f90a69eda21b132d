package gateway

import (
	"context"
	"time"
)

// restBetween is the shortest time between two looks at a run.
const restBetween = 100 * time.Millisecond

// changer is what reports changes of a store: [host.StoreState].
type changer interface {
	Changed(ctx context.Context) <-chan struct{}
}

// changes asks a store for its next change, for a loop that looks at a run after each change. A store keeps each
// request until a change or the end of its context, and a store that nobody uses has no changes. So changes asks again
// only after a change, or if the gateway has another host. The zero value is ready to use; end must be called.
type changes struct {
	of     changer
	change <-chan struct{}
	cancel context.CancelFunc
	asked  time.Time
}

// next returns a channel that is closed at the next change of a store. It must be called before the look. After a
// change it waits, so that a busy store does not keep the loop busy, too.
func (c *changes) next(ctx context.Context, of changer) <-chan struct{} {
	select {
	case <-c.change:
		if rest := restBetween - time.Since(c.asked); rest > 0 {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
			}
		}
	default:
		if c.change != nil && c.of == of {
			return c.change
		}
	}
	c.end()
	own, cancel := context.WithCancel(ctx)
	c.of, c.change, c.cancel, c.asked = of, of.Changed(own), cancel, time.Now()
	return c.change
}

// end withdraws the request that is open.
func (c *changes) end() {
	if c.cancel != nil {
		c.cancel()
	}
}
