package host

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// Reopen opens another version of the configuration on the store of this host. All other settings stay as in [Config].
// Both hosts work until they are closed; the last one closes the store.
//
// If the old and the new entry of a server lead to the same connection, both hosts share the server, and calls under
// way continue. Changes that only affect the catalog or the rules do not replace a connection, nor do other roots: a
// legacy server is notified of them. Changed values of secrets do. To hand over runs, call Drain and Close of this host
// while the other one runs [Service.Supervise]. Errors: config (also if the new store would be in another place),
// invalid (this host has a cassette, which the next one would begin again).
func (h *Host) Reopen(c *config.Config) (*Host, error) {
	if c == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "there is no configuration to open; read one with config.Load, or "+
			"pass Service().Info().Config for the present one")
	}
	cfg := h.cfg
	cfg.Config = c
	if cfg.Record != "" || cfg.Replay != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "a host with a cassette keeps its configuration; open another host")
	}
	if before, after := h.cfg.storeAt(), cfg.storeAt(); before != after {
		return nil, tenon.Errorf(tenon.CodeConfig, "the store would move to %s from %s; restart tenon "+
			"to use the new place", after, before)
	}
	if !h.config.SamePostgres(c) {
		return nil, tenon.Errorf(tenon.CodeConfig, "store.postgres has changed; restart tenon to use the new database")
	}
	next, err := prepare(context.Background(), cfg, h)
	if err != nil {
		return nil, err
	}
	next.store, next.users, next.arriving = next.sealed(h.store.Store), h.users, h.arriving
	if err := next.work(context.Background()); err != nil {
		return next, err
	}
	next.setRoots()
	h.replaced.Store(true)
	return next, nil
}

// rootsTime bounds the notification of one server that its roots have changed.
const rootsTime = 5 * time.Second

// setRoots gives the servers that this host took over the roots of its configuration.
func (h *Host) setRoots() {
	for name, s := range h.moved {
		ctx, cancel := context.WithTimeout(context.Background(), rootsTime)
		if err := s.SetRoots(ctx, h.config.Servers[name].Roots); err != nil {
			h.log.Warn("a server was not notified of its new roots", "server", name, "error", err)
		}
		cancel()
	}
	h.moved = nil
}

func (c Config) storeAt() string {
	path, _ := c.storePath()
	return path
}
