package host

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon/servers"
)

// ConnectEager connects the servers that are to be connected before somebody needs
// them (lifecycle eager) and says in the log how many are. One that cannot be
// reached is tried again in the background, as always. It returns when each has
// been tried once, or the context ends.
func (h *Host) ConnectEager(ctx context.Context) {
	var all []*servers.Server
	for name, s := range h.Servers() {
		if h.config.Servers[name].Lifecycle == servers.LifecycleEager {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return
	}
	limit := make(chan struct{}, 2*runtime.NumCPU())
	var connected atomic.Int32
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			if _, err := s.List(ctx); err == nil {
				connected.Add(1)
			} else if ctx.Err() == nil {
				h.log.Warn(err.Error())
			}
		})
	}
	wg.Wait()
	if ctx.Err() == nil {
		h.log.Info(fmt.Sprintf("MCP initialization complete: %d/%d servers connected", connected.Load(), len(all)))
	}
}
