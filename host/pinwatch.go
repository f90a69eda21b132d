package host

import (
	"context"
	"sync"
	"time"

	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

const (
	// pinsEvery is the interval between looks for lists of tools that servers announced as changed. It bounds how often
	// a server that announces changes all the time is asked.
	pinsEvery = time.Second
	// pinsTime is the time limit for the list of one server.
	pinsTime = 15 * time.Second
)

// watchPins asks servers that announce a change for their tools, and compares them with their pins. So a process that
// serves reports a changed tool when it changes, and not when somebody lists or calls it next. The servers log what has
// changed, the host logs which tools it no longer offers, and both are in the state of the server.
func (h *Host) watchPins(ctx context.Context) {
	tick := time.NewTicker(pinsEvery)
	defer tick.Stop()
	last := h.serverPool.changes.Load()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := h.serverPool.changes.Load(); now != last {
			last = now
			h.checkAnnounced(ctx)
		}
	}
}

// checkAnnounced lists the tools of the servers that announced a change.
func (h *Host) checkAnnounced(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pinsTime)
	defer cancel()
	var wg sync.WaitGroup
	for name, s := range h.connections() {
		if !s.IsOutdated() {
			continue
		}
		wg.Go(func() { h.checkPins(ctx, name, s) })
	}
	wg.Wait()
}

// checkPins compares the present tools of a server with their pins. An error is not reported: the next request for the
// tools returns it.
func (h *Host) checkPins(ctx context.Context, name string, s *servers.Server) {
	tools, err := s.List(ctx)
	if err != nil {
		h.log.Debug("the tools of a server were not compared with their pins", "server", name, "error", err.Error())
		return
	}
	held, err := h.pins.Check(ctx, name, tools)
	if err != nil {
		h.log.Debug("the tools of a server were not compared with their pins", "server", name, "error", err.Error())
		return
	}
	_, _ = h.judgePins(name, held)
}

// judgePins returns the tools that must not be offered because they differ from their pins, each with the reason, and
// an error about all of them. It logs the error once for each reason.
func (h *Host) judgePins(name string, held pins.Result) (blocked map[string]string, err error) {
	blocked = held.Blocked()
	err = pins.BlockedError(name, blocked)
	switch {
	case err != nil && h.config.Policy.Pins.Changed == policy.PinsWarn:
		h.log.Warn(err.Error())
		return nil, nil
	case err != nil:
		h.withhold(name, err)
	default:
		h.withheld.Delete(name)
	}
	return blocked, err
}
