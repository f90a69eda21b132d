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

// isolated calls code of the program in a new goroutine, and waits for it. It reports whether the code returned.
// Code that calls [runtime.Goexit], as t.Fatal of a test does, ends that goroutine, and not one that carries out runs.
func isolated(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

// exited is a part of the errors and log messages about code that called runtime.Goexit.
const exited = "ended its goroutine (runtime.Goexit, which t.Fatal of a test calls)"

// guardedCall calls a function of the program. A panic or the end of its goroutine is an error.
func guardedCall(log *slog.Logger, what string, f func() error) (err error) {
	call := func() (err error) {
		defer guard(log, what, &err)
		return f()
	}
	if !isolated(func() { err = call() }) {
		log.Error("a function of the program "+exited, "function", what)
		err = tenon.Errorf(tenon.CodeInternal, "the program's function %s %s: have it return an error", what, exited)
	}
	return err
}

// wrap calls Config.Wrap. If it panics, the toolset only returns the error.
func (h *Host) wrap(name string, t tenon.Toolset) (w tenon.Toolset) {
	err := guardedCall(h.log, "Wrap", func() error { w = h.cfg.Wrap(name, t); return nil })
	if err != nil {
		return brokenToolset{tenon.Errorf(tenon.CodeInternal, "server '%s' has no tools: %w", name, err)}
	}
	return w
}

// brokenToolset is a toolset whose wrapper could not be made.
type brokenToolset struct{ err error }

// Tools implements [tenon.Toolset].
func (b brokenToolset) Tools(context.Context) ([]tenon.Tool, error) { return nil, b.err }

// Call implements [tenon.Toolset].
func (b brokenToolset) Call(context.Context, tenon.Call) (*tenon.Result, error) { return nil, b.err }

// programOverlay calls Config.Overlay.
func (h *Host) programOverlay(ctx context.Context, who tenon.Principal, server string) (o servers.Overlay, err error) {
	err = guardedCall(h.log, "Overlay", func() (err error) { o, err = h.cfg.Overlay(ctx, who, server); return err })
	return o, err
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
	err = guardedCall(h.log, "Approve", func() (err error) { r, err = h.cfg.Approve(ctx, a); return err })
	return r, err
}

// fetch calls Config.Fetch, or reads a public address if it is nil.
func (h *Host) fetch(ctx context.Context, address string) (data []byte, err error) {
	if h.cfg.Fetch == nil {
		return fetchPublic(ctx, address)
	}
	err = guardedCall(h.log, "Fetch", func() (err error) { data, err = h.cfg.Fetch(ctx, address); return err })
	return data, err
}

// clusterOf calls Config.Cluster.
func (h *Host) clusterOf(ctx context.Context, c ClusterConfig) (cluster Cluster, err error) {
	err = guardedCall(h.log, "Cluster", func() (err error) { cluster, err = h.cfg.Cluster(ctx, c); return err })
	return cluster, err
}

// tell calls Config.Observe.
func (h *Host) tell(row tenon.Run, events []tenon.Event) {
	_ = guardedCall(h.log, "Observe", func() error { h.cfg.Observe(row, events); return nil }) // which has logged it
}

// slow returns Config.Slow for servers, or nil if it is not set.
func (h *Host) slow() func(servers.Starting) {
	if h.cfg.Slow == nil {
		return nil
	}
	f, log := h.cfg.Slow, h.log // a server may outlive the host
	return func(starting servers.Starting) {
		_ = guardedCall(log, "Slow", func() error { f(starting); return nil }) // which has logged it
	}
}

var _ tenon.Toolset = brokenToolset{}
