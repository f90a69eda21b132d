package host

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/transport"
)

// serverPool is the state that consecutive hosts of a store share (see [Host.Reopen]): the servers with unchanged
// entries, their connections, and what the servers depend on. Each host holds its servers. A server ends when the last
// host drops it; the rest ends with the last host.
type serverPool struct {
	reaper   transport.Reaper // of the servers' processes
	pool     servers.Pool
	redactor tenon.Redactor // masks the secrets in use
	brought  credentials    // credentials of callers, for runs that continue
	given    givenTools     // tools of questions, for their runs
	clients  clientCallers  // clients that wait for the calls of runs
	changes  atomic.Uint64  // how often servers reported that their tools changed
	// key signs the rows of the store, or nil for a store of the program.
	key atomic.Pointer[signed.Key]
	// switching is held while a server is enabled or disabled, and while the choices are read.
	switching sync.Mutex

	mu      sync.Mutex
	notices *notices // nil until a server has notifications for the program
	hosts   int
	holders map[*servers.Server]int
}

// join adds a host.
func (f *serverPool) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts++
}

// leave removes a host that has dropped its servers.
func (f *serverPool) leave() {
	f.mu.Lock()
	f.hosts--
	last, notices := f.hosts == 0, f.notices
	f.mu.Unlock()
	if last {
		if notices != nil {
			notices.close()
		}
		f.reaper.Close()
	}
}

// launch holds a new server.
func (f *serverPool) launch(s *servers.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders == nil {
		f.holders = map[*servers.Server]int{}
	}
	f.holders[s] = 1
}

// hold holds a server for another host. It returns false if no host holds the server any more.
func (f *serverPool) hold(s *servers.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders[s] == 0 {
		return false
	}
	f.holders[s]++
	return true
}

// drop releases a server and ends it after the last release. It returns when the server has ended.
func (f *serverPool) drop(s *servers.Server) error {
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

// abandon drops all servers of a host in parallel.
func (h *Host) abandon() {
	var wg sync.WaitGroup
	for _, s := range h.connections() {
		wg.Go(func() { _ = h.serverPool.drop(s) }) // an error of closing a server changes nothing here
	}
	wg.Wait()
	h.serverPool.leave()
}

// makeServer makes the server of an entry. If the previous host has the server of an equal entry, it returns that
// server with its connection.
func (h *Host) makeServer(before *Host, name string, entry servers.Config, kept string) *servers.Server {
	// The server may outlive the host, so it must not hold the host.
	cfg, pool, redactor, log := h.config, h.serverPool, &h.serverPool.redactor, h.log
	identity, untrusted := h.config.ServerIdentity(name), h.cfg.Untrusted
	connection := h.config.ConnectionIdentity(name)
	h.identities[name], h.connectedBy[name] = identity, connection
	if before != nil && identity != "" && before.connectedBy[name] == connection &&
		before.config.Policy.URLs.AllowsPrivate() == cfg.Policy.URLs.AllowsPrivate() {
		if s := before.Service().Connections()[name]; s != nil && h.serverPool.hold(s) {
			if before.identities[name] != identity {
				h.moved[name] = s
			}
			return s
		}
	}
	timeoutKey := ""
	if path := "servers." + name; cfg.FromTable(path) || cfg.Origin(path) == "default" { // no file has an entry
		timeoutKey = anyTimeoutKey
	}
	options := h.serverOptions(name, kept)
	options.TimeoutKey, options.Cache, options.Identity, options.Patience = timeoutKey, kept, identity, h.cfg.Patience
	options.RefreshTools = h.cfg.RefreshTools
	// Secrets are read when the server that uses them starts, so that a missing secret affects only this server.
	options.Resolve = func(ctx context.Context) (c servers.Config, err error) {
		if untrusted {
			return servers.Config{}, errUntrusted()
		}
		defer guard(log, loadedEnv, &err)
		c, err = cfg.Server(ctx, name)
		for _, v := range c.SecretValues() {
			redactor.Add(v)
		}
		return c, err
	}
	options.Check = func() error { return cfg.CheckServer(name) }
	s := servers.New(name, entry, options)
	pool.launch(s)
	return s
}

// serverOptions returns the options of every server, configured or added to the open host. The lists of an added server
// are not kept, and its scripts are not compared with their first versions: a program adds it again each time.
func (h *Host) serverOptions(name, logs string) servers.Options {
	cfg, pool := h.config, h.serverPool // the server may outlive the host, so it must not hold the host
	return servers.Options{LookupEnv: h.cfg.LookupEnv, Version: h.cfg.Version, Logger: h.log, Logs: logs,
		Key:    func(key string) string { return cfg.KeyName("servers." + name + "." + key) },
		Seal:   func(parts ...[]byte) []byte { return pool.key.Load().Listing(parts...) },
		Frames: !h.cfg.ShortLived, Reaper: &pool.reaper, Pool: &pool.pool, Vault: h.vault,
		Learned: pool.redactor.Add, Mask: pool.redactor.Text,
		Admit: h.onlyPublic(), Slow: h.slow(), Notify: h.notify(),
		Changed: func(string) { pool.changes.Add(1) }}
}
