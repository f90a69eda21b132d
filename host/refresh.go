package host

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/servers"
)

// Refresh compares the tools of a run with what its agent would see now, once for each change that a server reported.
// Filters, names, pins and rules apply as at the start of a run. The tools stay as they are if a server that has some
// of them cannot be listed: a server that is away for a moment has not removed its tools. In a replay, the recorded
// lists are compared in each turn, because no server reports a change.
func (h execution) Refresh(ctx context.Context, run tenon.Run, p *agent.Prompt) (*agent.ToolsChanged, error) {
	for _, s := range h.host.connections() {
		s.Settle()
	}
	changes := h.host.serverPool.changes.Load()
	if p.Tools == "" && !p.MayAddTools() || changes == 0 && !h.host.cassette.playsServers() {
		return nil, nil
	}
	own := h.host.given.all(run.ID)
	key := refreshKey(run, p, own)
	if !h.host.cassette.playsServers() && h.host.refreshed.is(key, changes) {
		return nil, nil
	}
	before, err := h.host.snapshot(ctx, p.Tools)
	if err != nil {
		return nil, err
	}
	after, waits := h.present(ctx, run, p, before, own)
	if after == nil {
		return nil, nil
	}
	c := compareTools(before, after)
	c.Withheld = withheldOf(before, c.Removed, waits)
	if after == before || c.Tools == p.Tools {
		h.host.refreshed.set(key, changes)
		return nil, nil
	}
	if _, err := h.host.store.PutBlob(ctx, run.ID, after.Encode()); err != nil {
		return nil, err
	}
	h.host.remember(c.Tools, after)
	now := p.WithTools(c)
	h.host.refreshed.set(refreshKey(run, now, own), changes)
	h.host.log.Info("the tools of the run changed", "run", run.ID, "added", c.Added, "changed", c.Changed, "removed",
		c.Removed)
	return c, nil
}

// refreshKey identifies what the result of a comparison depends on, besides the servers. It includes the run if the
// question has toolsets, because only this run has them.
func refreshKey(run tenon.Run, p *agent.Prompt, own map[string]executor.Toolset) string {
	id := ""
	if len(own) > 0 {
		id = run.ID
	}
	groups := ""
	if p.Groups != nil {
		groups = strconv.Itoa(len(*p.Groups)) + "\x00" + strings.Join(*p.Groups, "\x00")
	}
	return strings.Join([]string{id, p.Agent, p.Model, p.Tools, groups, strconv.FormatBool(p.Selected)}, "\x00")
}

// withheldOf returns the servers with removed tools whose present tools wait for a person.
func withheldOf(before *catalog.Snapshot, removed []string, waits map[string]error) (list []agent.WithheldTools) {
	lost := map[string]bool{}
	for _, name := range removed {
		if t, ok := before.Lookup(name); ok {
			lost[t.Server] = true
		}
	}
	for _, server := range slices.Sorted(maps.Keys(waits)) {
		if lost[server] {
			list = append(list, agent.WithheldTools{Server: server, Reason: waits[server].Error()})
		}
	}
	return list
}

// present returns the tools that the agent of a prompt would see now, or nil if they are not known. For a run that
// has no tools and would still get none, it returns before. waits has the errors of servers whose tools wait for a
// person.
func (h execution) present(ctx context.Context, run tenon.Run, p *agent.Prompt, before *catalog.Snapshot,
	own map[string]executor.Toolset) (after *catalog.Snapshot, waits map[string]error) {
	a, err := h.host.config.Agent(p.Agent)
	if err != nil {
		return nil, nil // the agent is no longer configured
	}
	if p.Groups != nil {
		a.Groups = *p.Groups
	}
	sets, had := h.host.sets(), map[string]bool{}
	for _, t := range before.Tools() {
		had[t.Server] = true
		if sets[t.Server] == nil && own[t.Server] == nil {
			return nil, nil
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), func(name string) bool {
		return slices.Contains(h.host.cfg.Hidden, name) && !had[name]
	})
	told := maps.Collect(h.host.withheld.Range)
	snapshot, problems, err := h.host.snapshotWith(ctx, own, names...)
	if err != nil {
		h.host.log.Warn("the changed tools are not known", "run", run.ID, "error", err.Error())
		return nil, nil
	}
	waits = map[string]error{}
	for _, problem := range problems {
		waiting := tenon.ErrorCode(problem.Err) == tenon.CodeWaiting
		if waiting {
			waits[problem.Server] = problem.Err
		}
		// Another process than a command has logged it in withhold.
		if waiting && h.host.cfg.ShortLived && told[problem.Server] != problem.Err.Error() {
			h.host.log.Warn(problem.Err.Error(), "run", run.ID, "server", problem.Server)
		}
		if had[problem.Server] && !waiting {
			h.host.log.Warn("the changed tools are not known", "run", run.ID, "server", problem.Server, "error",
				problem.Err.Error())
			return nil, nil
		}
	}
	seen := h.host.sight(snapshot, p.Agent, a, p.Model)
	after = seen.tools
	switch {
	case p.Tools == "" && h.host.usable(seen, p.Model) == 0:
		return before, waits
	case !p.MayAddTools():
		after = after.Only(func(t *tenon.Tool) bool {
			old, ok := before.Lookup(t.Name)
			return ok && old.Server == t.Server && old.Remote == t.Remote
		})
	}
	return after, waits
}

// compareTools returns the difference between two snapshots.
func compareTools(before, after *catalog.Snapshot) *agent.ToolsChanged {
	c := &agent.ToolsChanged{Tools: after.Digest()}
	for _, t := range after.Tools() {
		old, ok := before.Lookup(t.Name)
		switch {
		case !ok:
			c.Added = append(c.Added, t.Name)
		case old.Server != t.Server || old.Remote != t.Remote || old.Description != t.Description ||
			!bytes.Equal(old.Input, t.Input) || !bytes.Equal(old.Output, t.Output):
			c.Changed = append(c.Changed, t.Name)
		}
	}
	for _, t := range before.Tools() {
		if _, ok := after.Lookup(t.Name); !ok {
			c.Removed = append(c.Removed, t.Name)
		}
	}
	return c
}

// removedSince reports whether a server that announced changes no longer has a tool. The tools of a workflow's steps
// are fixed when its run begins. If the server cannot be listed, it reports false; the call then returns the error.
func (h execution) removedSince(ctx context.Context, t *tenon.Tool) bool {
	s := h.host.connections()[h.host.serverFor(t.Server, t.Rules.Target)]
	if s == nil {
		return false
	}
	s.Settle()
	if h.host.serverPool.changes.Load() == 0 || s.Status().State == servers.StateDisabled {
		return false
	}
	tools, err := s.Tools(ctx)
	return err == nil && !slices.ContainsFunc(tools, func(now tenon.Tool) bool { return now.Remote == t.Remote })
}

// maxRefreshed bounds the comparisons that a host remembers.
const maxRefreshed = 4096

// refreshed records the number of changes at which tools were compared.
type refreshed struct {
	mu sync.Mutex
	at map[string]uint64 // by refreshKey
}

func (r *refreshed) is(key string, changes uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at[key] == changes
}

func (r *refreshed) set(key string, changes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil || len(r.at) >= maxRefreshed {
		r.at = map[string]uint64{}
	}
	r.at[key] = changes
}

var _ executor.Conversations = execution{}
