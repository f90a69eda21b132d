package host

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon/servers"
)

func (h serviceHandle) Connect(ctx context.Context) {
	if h.host.cassette.playsServers() {
		return
	}
	var all []*servers.Server
	for name, s := range h.host.connections() {
		if h.host.config.Servers[name].Lifecycle == servers.LifecycleEager {
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
				h.host.log.Warn(err.Error())
			}
		})
	}
	wg.Wait()
	if ctx.Err() == nil {
		h.host.log.Info(fmt.Sprintf("MCP initialization complete: %d/%d servers connected", connected.Load(), len(all)))
	}
}
