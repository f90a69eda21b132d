package executor

import (
	"context"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// gates limit how many calls of a tool run at a time, across all runs of the process. The zero value is ready to use.
type gates struct {
	mu   sync.Mutex
	open map[policy.ID]chan struct{} // one slot for each running call
}

// enter waits for one of most slots of a tool; if most is 0, there is no limit. Errors: cancelled.
func (g *gates) enter(ctx context.Context, id policy.ID, most int) (leave func(), err error) {
	if most <= 0 {
		return func() {}, nil
	}
	g.mu.Lock()
	room := g.open[id]
	if room == nil {
		if g.open == nil {
			g.open = map[policy.ID]chan struct{}{}
		}
		room = make(chan struct{}, most)
		g.open[id] = room
	}
	g.mu.Unlock()
	select {
	case room <- struct{}{}:
		return func() { <-room }, nil
	case <-ctx.Done():
		return nil, tenon.Errorf(tenon.CodeCancelled,
			"tool '%s' of server '%s' was not called: %w while %d other calls of it were under way",
			id.Remote, id.Server, context.Cause(ctx), most)
	}
}
