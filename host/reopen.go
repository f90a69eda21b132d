package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// Reopen opens another version of the configuration on the store that this host
// has open; everything else stays as [Config] said. Both hosts work until they are
// closed; the last one to be closed closes the store. A server whose entry leads to the same
// connection as before is the same one in both: it keeps its connection, and calls that
// are under way go on. What the catalog and the rules take from an entry does not count;
// what its secrets come to does. To hand runs over, Drain and Close this one while the
// other is at [Host.Supervise]. Errors: config, also where the store would lie elsewhere.
func (h *Host) Reopen(c *config.Config) (*Host, error) {
	cfg := h.cfg
	cfg.Config = c
	if before, after := h.cfg.storeAt(), cfg.storeAt(); before != after {
		return nil, tenon.Errorf(tenon.CodeConfig, "the store would lie at %s and not at %s any more; for that start tenon anew", after, before)
	}
	next, err := prepare(context.Background(), cfg, h)
	if err != nil {
		return nil, err
	}
	next.store, next.users = newSealing(h.store.Store, next.vault, next.redacts), h.users
	return next, next.work()
}

func (c Config) storeAt() string {
	path, _ := c.storePath()
	return path
}
