package host

import (
	"maps"
	"math"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
)

// maxGiven bounds the runs whose own tools are kept at a time.
const maxGiven = 4096

// givenTools keeps the toolsets that questions brought, for their runs. Hosts that follow one another on a store share
// it.
type givenTools struct {
	mu   sync.Mutex
	of   map[string]givenSets // by run
	next uint64
}

type givenSets struct {
	order uint64
	sets  map[string]executor.Toolset // by server
}

// hold keeps the toolsets of a run. If there are too many runs, the oldest loses its tools.
func (g *givenTools) hold(run string, sets map[string]executor.Toolset) {
	sets = maps.Clone(sets)
	delete(sets, catalog.ClientServer) // needs no memory; see doClient
	if len(sets) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.of[run]; !ok && len(g.of) >= maxGiven {
		oldest := ""
		for id, s := range g.of {
			if oldest == "" || s.order < g.of[oldest].order {
				oldest = id
			}
		}
		delete(g.of, oldest)
	}
	if g.of == nil {
		g.of = map[string]givenSets{}
	}
	g.next++
	g.of[run] = givenSets{g.next, sets}
}

func (g *givenTools) drop(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, run)
}

// all returns the toolsets that a run's question brought. The map must not be changed.
func (g *givenTools) all(run string) map[string]executor.Toolset {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[run].sets
}

// find returns a toolset of a run, or nil if its question brought none of that name.
func (g *givenTools) find(run, server string) executor.Toolset {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[run].sets[server]
}

// questionTools checks the tools of a question and prepares them like the tools of the host. Functions belong to
// [FunctionServer], with the functions of the host. Errors: config.
func (h *Host) questionTools(q Question) (map[string]executor.Toolset, error) {
	if len(q.Toolsets)+len(q.Functions)+len(q.ClientTools) == 0 {
		return nil, nil
	}
	there := h.sets()
	own := map[string]executor.Toolset{}
	if len(q.Functions) > 0 {
		if there[FunctionServer] != nil && len(h.cfg.Functions) == 0 {
			return nil, tenon.Errorf(tenon.CodeConfig, "the functions of the question need the server name '%s', "+
				"which a toolset of the host has", FunctionServer)
		}
		t, err := newFunctions(append(h.cfg.Functions[:len(h.cfg.Functions):len(h.cfg.Functions)], q.Functions...))
		if err != nil {
			return nil, err
		}
		own[FunctionServer] = h.wrapped(FunctionServer, newOwnTools(FunctionServer, t, h.log))
	}
	if len(q.ClientTools) > 0 {
		t, err := h.newClientTools(q.ClientTools)
		if err != nil {
			return nil, err
		}
		own[catalog.ClientServer] = t
	}
	for name, t := range q.Toolsets {
		if err := checkToolset(name, t); err != nil {
			return nil, err
		}
		_, configured := h.config.Servers[name] // also a disabled one: rules and grants are keyed by its identity
		if configured || there[name] != nil || own[name] != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "toolset '%s' of the question has the name of a server of the "+
				"host; give it another one", name)
		}
		own[name] = h.wrapped(name, newOwnTools(name, t, h.log))
	}
	return own, h.ruleset().Layers.CheckNames(h.config.NamesDiffer(h.programSets(own)))
}

// programSets counts the toolsets of the program, including the toolsets of a question.
func (h *Host) programSets(own map[string]executor.Toolset) int {
	h.mu.Lock()
	all, removed := h.toolsets, h.removed
	h.mu.Unlock()
	return h.programSetsOf(all, own, removed)
}

// programSetsOf is programSets for the toolsets of one moment. A removed server counts, since it keeps its names.
func (h *Host) programSetsOf(all, own map[string]executor.Toolset, removed map[string]*catalog.Listing) int {
	n := len(own)
	if own[catalog.ClientServer] != nil {
		n-- // a rule cannot name the tools of a client as a toolset of the program
	}
	for name := range all {
		if _, configured := h.config.Servers[name]; configured || own[name] != nil {
			continue
		}
		if !catalog.IsReserved(name) || h.kinds[name].flows && len(h.cfg.Workflows) > 0 {
			n++
		}
	}
	for name, kept := range removed {
		_, configured := h.config.Servers[name]
		if !configured && own[name] == nil && all[name] == nil && kept.Len() > 0 {
			n++
		}
	}
	return n
}

// withQuestion adds the toolsets of a question to the host's. It returns all toolsets, and the [catalog.Source] of
// each, which says how its tools are named and filtered.
func (h *Host) withQuestion(sets map[string]executor.Toolset, sources map[string]*catalog.Source,
	own map[string]executor.Toolset) (map[string]executor.Toolset, map[string]*catalog.Source) {
	sets, sources = maps.Clone(sets), maps.Clone(sources)
	for name, t := range own {
		joined := math.MaxInt // added last: in a conflict of names, the tools of the host keep theirs
		if sources[name] != nil {
			joined = sources[name].Joined
		} else if kept := h.removedListing(name); kept != nil {
			joined = kept.Joined() // it comes back for this question
		}
		sets[name] = t
		sources[name] = &catalog.Source{Server: name, Trusted: true, Identity: h.identify(name, "").Server,
			Entries: h.entriesOf(name), Named: true, Joined: joined}
	}
	return sets, sources
}

// entriesOf returns the configured tools of a server, or nil if there are none.
func (h *Host) entriesOf(server string) map[string]catalog.Tool {
	var entries map[string]catalog.Tool
	for key, t := range h.config.Tools {
		if t = t.WithDefaults(key); t.Server == server {
			if entries == nil {
				entries = map[string]catalog.Tool{}
			}
			entries[key] = t
		}
	}
	return entries
}
