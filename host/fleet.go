package host

import (
	"context"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/transport"
)

// fleet is what hosts have in common that follow one another on a store (see
// [Host.Reopen]): the servers whose entries did not change, with their connections,
// and what those depend on. Each host holds its servers; the last one to let go of a
// server ends it, and the last one of all ends the rest.
type fleet struct {
	reaper   transport.Reaper // of the servers' processes
	pool     servers.Pool
	redactor tenon.Redactor // knows the secrets that are in use
	brought  credentials    // of callers, for runs that go on
	// switching is held while a server is switched, and while it is looked which are.
	switching sync.Mutex

	mu      sync.Mutex
	hosts   int
	holders map[*servers.Server]int
}

// join adds a host.
func (f *fleet) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts++
}

// leave takes a host away, which has let go of its servers.
func (f *fleet) leave() {
	f.mu.Lock()
	f.hosts--
	last := f.hosts == 0
	f.mu.Unlock()
	if last {
		f.reaper.Close()
	}
}

// launch holds a server that was just made.
func (f *fleet) launch(s *servers.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders == nil {
		f.holders = map[*servers.Server]int{}
	}
	f.holders[s] = 1
}

// hold holds a server for one more host, unless nobody has it any more.
func (f *fleet) hold(s *servers.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders[s] == 0 {
		return false
	}
	f.holders[s]++
	return true
}

// drop lets go of a server, and ends it where nobody else has it. It returns when it
// has ended.
func (f *fleet) drop(s *servers.Server) error {
	f.mu.Lock()
	f.holders[s]--
	last := f.holders[s] == 0
	if last {
		delete(f.holders, s)
	}
	f.mu.Unlock()
	if !last {
		return nil
	}
	return s.Close()
}

// abandon lets go of everything that a host has, one beside the other.
func (h *Host) abandon() {
	var wg sync.WaitGroup
	for _, s := range h.Servers() {
		wg.Go(func() { _ = h.fleet.drop(s) }) // a server that ends badly has nothing more to tell us
	}
	wg.Wait()
	h.fleet.leave()
}

// makeServer makes the server of an entry, or takes the one of the host before, with its
// connection, where the same entry led to it.
func (h *Host) makeServer(before *Host, name string, entry servers.Config, kept string) *servers.Server {
	// The host is not kept by what the server holds, since the server may outlive it.
	cfg, redactor, identity := h.config, &h.fleet.redactor, h.config.ServerIdentity(name)
	h.identities[name] = identity
	if before != nil && identity != "" && before.identities[name] == identity &&
		before.config.Policy.URLs.AllowsPrivate() == cfg.Policy.URLs.AllowsPrivate() {
		if s := before.Servers()[name]; s != nil && h.fleet.hold(s) {
			return s
		}
	}
	s := servers.New(name, entry, servers.Options{LookupEnv: h.cfg.LookupEnv, Version: h.cfg.Version, Logger: h.log,
		Cache: kept, Logs: kept, Live: h.cfg.Live, Frames: !h.cfg.Brief, Reaper: &h.fleet.reaper, Pool: &h.fleet.pool,
		Vault: h.vault, Learned: redactor.Add, Mask: redactor.Text, Admit: h.onlyPublic(), Slow: h.cfg.Slow,
		// A secret is read when the server that uses it starts, so that one
		// that is missing harms no other server.
		Resolve: func(ctx context.Context) (servers.Config, error) {
			c, err := cfg.Server(ctx, name)
			for _, v := range c.SecretValues() {
				redactor.Add(v)
			}
			return c, err
		}})
	h.fleet.launch(s)
	return s
}
