package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/figures/durable"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/transport"
)

// The number of runs and servers in P8. The memory is measured after the warm-up, whose runs and servers fill the
// caches and pools. The measured numbers are large, so that fixed costs of the Go runtime do not matter.
const (
	waitingRuns = 10_000
	warmRuns    = 500
	idleServers = 200
	warmServers = 48
)

// The names of the child processes of P8, one for each measurement.
const (
	waitingChild    = "waiting"
	idleStdioChild  = "idle-stdio"
	idleFramesChild = "idle-frames"
	idleHTTPChild   = "idle-http"
)

// measureP8 measures the cost of idle objects: runs of agents that wait for an approval, and connected
// servers that are not used.
func measureP8(s *session) error {
	for _, m := range []struct {
		child, id, name, unit string
		per                   float64 // bytes per unit
	}{
		{waitingChild, "P8.runs", "10,000 runs of agents that wait for an approval add to the process", "MB", 1e6},
		{idleStdioChild, "P8.server", "an idle connected server over stdio, on our side", "KiB", 1024 * idleServers},
		{idleFramesChild, "P8.server.frames",
			"the same with its last messages kept to be looked at, as tenon serve does", "KiB", 1024 * idleServers},
		{idleHTTPChild, "P8.server.http", "an idle connected server over Streamable HTTP, on our side", "KiB",
			1024 * idleServers},
	} {
		var resident, live []float64
		for range s.rounds {
			var f durable.Memory
			if err := s.durable(m.child, &f); err != nil {
				return err
			}
			if f.Resident == 0 {
				return errors.New("the resident memory of a process is not available on this system")
			}
			resident, live = append(resident, float64(f.Resident)/m.per), append(live, float64(f.Live)/m.per)
		}
		s.add(m.id, m.name, m.unit, resident)
		s.add(m.id+".live", m.name+": live objects and stacks", m.unit, live)
	}
	return measureUnused(s)
}

// idleMeasure runs one of the children of P8 and returns the added memory.
func idleMeasure(ctx context.Context, what, dir string) (durable.Memory, error) {
	switch what {
	case waitingChild:
		return waitingAgents(ctx, dir, warmRuns, waitingRuns)
	case idleStdioChild:
		return idle(ctx, servers.TransportStdio, false, warmServers, idleServers)
	case idleFramesChild:
		return idle(ctx, servers.TransportStdio, true, warmServers, idleServers)
	}
	return idle(ctx, servers.TransportHTTP, false, warmServers, idleServers)
}

// askingModel makes one call that needs an approval.
type askingModel struct{}

// Name implements [tenon.Model].
func (askingModel) Name() string { return "asking/model" }

// Generate implements [tenon.Model].
func (askingModel) Generate(context.Context, *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: &tenon.Response{Stop: tenon.StopToolUse,
			Usage: &tenon.Usage{Input: 100, Output: 20}, Model: "asking",
			Message: &tenon.Message{Role: tenon.RoleAssistant,
				Parts: []tenon.Part{{Type: tenon.PartText, Text: "I shall send it."},
					{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "call_0", Name: "send",
						Arguments: json.RawMessage(`{"to":"somebody","text":"The report is done."}`)}}}}}}, nil)
	}
}

// sendTools has one tool with side effects.
type sendTools struct{ instantTools }

// Tools implements [tenon.Toolset].
func (sendTools) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Server: "mail", Remote: "send", Name: "send", Description: "Sends a message.",
		Input: json.RawMessage(
			`{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}},"required":["to",` +
				`"text"]}`)}}, nil
}

// waitingAgents starts runs of a real agent in a real store until they wait for an approval. It returns the
// memory that they add to the process.
func waitingAgents(ctx context.Context, dir string, warm, runs int) (_ durable.Memory, err error) {
	h, err := host.Open(ctx, host.Config{Config: &config.Config{}, Home: dir,
		Models:    map[string]tenon.Model{"asking": askingModel{}},
		Toolsets:  map[string]tenon.Toolset{"mail": sendTools{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		return durable.Memory{}, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	one := func() error {
		run, err := h.Start(ctx, host.Question{Text: "Send the report.", Model: "asking"})
		if err != nil {
			return err
		}
		for _, err := range h.Runs().Events(ctx, run.ID, 0) { // until it waits
			if err != nil {
				return err
			}
		}
		row, err := h.Runs().Get(ctx, run.ID)
		if err == nil && row.State != tenon.RunInputRequired {
			err = fmt.Errorf("run %s is %s and is not waiting", row.ID, row.State)
		}
		return err
	}
	return added(warm, runs, one)
}

// added calls one a number of times, after some warm-up calls, and returns the memory that the calls add to
// the process. Many calls run concurrently.
func added(warm, n int, one func() error) (durable.Memory, error) {
	some := func(n int) error {
		const at = 50
		var wg sync.WaitGroup
		errs := make(chan error, at)
		work := make(chan struct{}, n)
		for range n {
			work <- struct{}{}
		}
		close(work)
		for range min(at, n) {
			wg.Go(func() {
				for range work {
					if err := one(); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		close(errs)
		return <-errs
	}
	if err := some(warm); err != nil {
		return durable.Memory{}, err
	}
	before := durable.MemoryNow()
	if err := some(n); err != nil {
		return durable.Memory{}, err
	}
	return durable.MemoryNow().Less(before), nil
}

// idle connects servers, lists their tools once, and returns the memory that they add to the process while
// unused. The memory of the server processes is not counted.
func idle(ctx context.Context, over string, frames bool, warm, n int) (_ durable.Memory, err error) {
	exe, err := os.Executable()
	if err != nil {
		return durable.Memory{}, err
	}
	cfg := servers.Config{Transport: over, Command: exe, Args: []string{"child", "server", ours}}
	if over == servers.TransportHTTP {
		url, stop, err := bench.StartHTTP(exe, "child", "server", ours2025)
		if err != nil {
			return durable.Memory{}, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		cfg = servers.Config{Transport: over, URL: url}
	}
	var reaper transport.Reaper // shared by all servers, as in a host
	defer reaper.Close()
	var mu sync.Mutex
	var all []io.Closer
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.Close())
		}
	}()
	one := func() error {
		mu.Lock()
		s := servers.New("s"+strconv.Itoa(len(all)), cfg, servers.Options{LookupEnv: os.LookupEnv, Version: "1",
			Reaper: &reaper, Frames: frames})
		all = append(all, s)
		mu.Unlock()
		tools, err := s.Tools(ctx)
		if err == nil && len(tools) != 2 {
			err = fmt.Errorf("a server has %d tools, want 2", len(tools))
		}
		return err
	}
	return added(warm, n, one)
}

var (
	_ tenon.Model   = askingModel{}
	_ tenon.Toolset = sendTools{}
)
