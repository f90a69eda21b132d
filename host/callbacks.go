package host

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
)

// The functions of [Config] are code of the program. A panic in one of them fails what it was called for, and not the
// process, in which other runs are at work.

// guard turns a panic of a function of the program into an error. It is deferred.
func guard(log *slog.Logger, what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("a function of the program panicked", "function", what, "panic", fmt.Sprint(p), "stack",
		string(debug.Stack()))
	if err != nil {
		*err = tenon.Errorf(tenon.CodeInternal, "the program's function %s panicked: fix it in the program; the log "+
			"has the stack", what)
	}
}

// wrap calls Config.Wrap. If it panics, the toolset only returns the error.
func (h *Host) wrap(name string, t tenon.Toolset) (w tenon.Toolset) {
	var err error
	defer func() {
		if err != nil {
			w = brokenToolset{tenon.Errorf(tenon.CodeInternal, "server '%s' has no tools: %w", name, err)}
		}
	}()
	defer guard(h.log, "Wrap", &err)
	return h.cfg.Wrap(name, t)
}

// brokenToolset is a toolset whose wrapper could not be made.
type brokenToolset struct{ err error }

// Tools implements [tenon.Toolset].
func (b brokenToolset) Tools(context.Context) ([]tenon.Tool, error) { return nil, b.err }

// Call implements [tenon.Toolset].
func (b brokenToolset) Call(context.Context, tenon.Call) (*tenon.Result, error) { return nil, b.err }

// programOverlay calls Config.Overlay.
func (h *Host) programOverlay(ctx context.Context, who tenon.Principal, server string) (o servers.Overlay, err error) {
	defer guard(h.log, "Overlay", &err)
	return h.cfg.Overlay(ctx, who, server)
}

// guardedEnv returns Config.LookupEnv such that a variable whose lookup panics is not set.
func guardedEnv(lookup func(string) (string, bool), log *slog.Logger) func(string) (string, bool) {
	return func(name string) (value string, ok bool) {
		defer guard(log, "LookupEnv", nil) // value and ok stay zero
		return lookup(name)
	}
}

// loadedEnv is what guard calls the lookup of variables that the program gave to package config.
const loadedEnv = "config.Options.LookupEnv"

// decide calls Config.Approve.
func (h *Host) decide(ctx context.Context, a Approval) (r agent.Ruling, err error) {
	defer guard(h.log, "Approve", &err)
	return h.cfg.Approve(ctx, a)
}

// fetch calls Config.Fetch, or reads a public address if it is nil.
func (h *Host) fetch(ctx context.Context, address string) (data []byte, err error) {
	if h.cfg.Fetch == nil {
		return fetchPublic(ctx, address)
	}
	defer guard(h.log, "Fetch", &err)
	return h.cfg.Fetch(ctx, address)
}

// clusterOf calls Config.Cluster.
func (h *Host) clusterOf(ctx context.Context, c ClusterConfig) (cluster Cluster, err error) {
	defer guard(h.log, "Cluster", &err)
	return h.cfg.Cluster(ctx, c)
}

// tell calls Config.Observe.
func (h *Host) tell(row tenon.Run, events []tenon.Event) {
	defer guard(h.log, "Observe", nil)
	h.cfg.Observe(row, events)
}

// slow returns Config.Slow for servers, or nil if it is not set.
func (h *Host) slow() func(servers.Starting) {
	if h.cfg.Slow == nil {
		return nil
	}
	f, log := h.cfg.Slow, h.log // a server may outlive the host
	return func(starting servers.Starting) {
		defer guard(log, "Slow", nil)
		f(starting)
	}
}

var _ tenon.Toolset = brokenToolset{}
