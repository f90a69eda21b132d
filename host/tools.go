package host

import (
	"context"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
)

// Problem is a server whose tools are missing, or a tool that had to be left out.
type Problem struct {
	Server string
	Err    error
}

// Tools connects to the servers that are needed and returns what they offer, as
// one snapshot. Servers that cannot be reached are problems, not errors: the
// others' tools are there. Names, if given, are the servers to ask; else all.
// The error has code unreachable if a required server cannot be reached.
func (h *Host) Tools(ctx context.Context, names ...string) (*catalog.Snapshot, []Problem, error) {
	all := len(names) == 0
	sets, sources := h.offerers()
	if all {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), func(name string) bool { return isOwn(name) || slices.Contains(h.cfg.Hidden, name) })
	}
	type answer struct {
		tools   []tenon.Tool
		changed map[string]string // since they were pinned
		err     error
	}
	answers := make([]answer, len(names))
	// Starting a process costs CPU: twice the cores at a time is the fastest.
	limit := make(chan struct{}, 2*runtime.NumCPU())
	var wg sync.WaitGroup
	for i, name := range names {
		t, ok := sets[name]
		if !ok {
			known := slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), isReserved) // tenon's own are no help
			return nil, nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", tenon.Visible(name), nearest(name, known))
		}
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			a := &answers[i]
			if a.tools, a.err = t.Tools(ctx); a.err == nil {
				a.changed, a.err = h.checkPins(ctx, name, a.tools)
			}
		})
	}
	wg.Wait()
	var shelves []*catalog.Shelf
	var problems []Problem
	for i, name := range names {
		entry, configured := h.config.Servers[name]
		if err := answers[i].err; err != nil {
			if configured && entry.Required {
				return nil, nil, tenon.Errorf(tenon.ErrorCode(err), "server '%s' is required: %w", name, err)
			}
			problems = append(problems, Problem{name, err})
			continue
		}
		blocked := answers[i].changed
		if err := h.unpinned(name, blocked); err != nil && h.config.Policy.Pins == policy.PinsWarn {
			h.log.Warn(err.Error())
			blocked = nil
		} else if err != nil {
			problems = append(problems, Problem{name, err})
		}
		shelves = append(shelves, h.shelf(name, sources[name], answers[i].tools, blocked))
	}
	snapshot, errs := h.merged(shelves)
	if all && len(problems) == 0 {
		errs = append(slices.Clip(errs), h.inert(snapshot)...)
	}
	for _, err := range errs {
		problems = append(problems, Problem{"", h.placed(err)})
	}
	return snapshot, problems, nil
}

// KnownTools is the snapshot of the tools that are known without asking a server:
// those that were listed before, and those that need none. It starts nothing and writes
// nothing down.
func (h *Host) KnownTools(ctx context.Context) *catalog.Snapshot {
	sets, sources := h.offerers()
	var shelves []*catalog.Shelf
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		var tools []tenon.Tool
		var err error
		s, connects := h.Servers()[name]
		switch {
		case isOwn(name) || slices.Contains(h.cfg.Hidden, name):
			continue
		case connects:
			tools, _ = s.Remembered()
		default:
			tools, err = sets[name].Tools(ctx)
		}
		if err == nil && len(tools) > 0 {
			shelves = append(shelves, h.shelf(name, sources[name], tools, nil))
		}
	}
	snapshot, _ := h.merged(shelves)
	return snapshot
}

// shelved is what was shaped last, kept so that only what has changed is shaped
// again: the tools of one server, and the snapshot of all.
type shelved struct {
	source  *catalog.Source // how they were taken; another one of the same name is another server
	tools   []tenon.Tool    // as the server gave them; the same array is the same list
	blocked map[string]string
	shelf   *catalog.Shelf
}

// shelf shapes what a server offers, unless that was done before. The server may have
// been taken out of use meanwhile, or replaced: then nothing is kept for its name.
func (h *Host) shelf(name string, source *catalog.Source, tools []tenon.Tool, blocked map[string]string) *catalog.Shelf {
	h.mu.Lock()
	last, ok := h.shelves[name]
	h.mu.Unlock()
	if ok && last.source == source && (sameList(last.tools, tools) || reflect.DeepEqual(last.tools, tools)) && maps.Equal(last.blocked, blocked) {
		return last.shelf
	}
	src := *source
	src.Tools, src.Blocked = tools, blocked
	s := catalog.Shape(src)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sources[name] == source {
		h.shelves[name] = shelved{source: source, tools: tools, blocked: blocked, shelf: s}
	}
	return s
}

// merged makes the snapshot of some shelves, unless they are those of the last one.
func (h *Host) merged(shelves []*catalog.Shelf) (*catalog.Snapshot, []error) {
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last.snapshot == nil || !slices.Equal(last.shelves, shelves) {
		before := last.snapshot
		last = merge{shelves: shelves, sights: map[string]sight{}}
		last.snapshot, last.problems = before.Merge(shelves)
		h.mu.Lock()
		h.last = last
		h.mu.Unlock()
	}
	return last.snapshot, last.problems
}

// merge is a snapshot and what it was made of.
type merge struct {
	shelves  []*catalog.Shelf
	snapshot *catalog.Snapshot
	problems []error
	sights   map[string]sight // of each agent, its groups and the bound of its model's provider; under the host's lock
}

// sight is what an agent sees of all tools.
type sight struct {
	tools *catalog.Snapshot
	told  *catalog.Snapshot // of these, those that need not be found
	own   int               // of those, tools that are offered only where there is a use for them
}

// sight returns what an agent sees of a snapshot. It is looked for among all tools
// once, not for each run.
func (h *Host) sight(s *catalog.Snapshot, name string, a agent.Config, model string) sight {
	most := catalog.MaxTools(h.dialect(model))
	of := name
	name += "\x00" + strconv.Itoa(most) + "\x00" + strings.Join(a.Groups, "\x00")
	h.mu.Lock()
	last := h.last
	seen, ok := last.sights[name]
	h.mu.Unlock()
	if ok && last.snapshot == s {
		return seen
	}
	seen = sight{tools: h.deferring(visible(s, of, a), most)}
	seen.told = seen.tools.Only(func(t *tenon.Tool) bool { return !isDeferred(t) })
	for _, t := range seen.told.Tools() {
		if isOwn(t.Server) {
			seen.own++
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.snapshot == s {
		if len(h.last.sights) >= maxSnapshots {
			clear(h.last.sights)
		}
		h.last.sights[name] = seen
	}
	return seen
}

// openSources says how the tools of each server are taken, as configured.
func (h *Host) openSources() error {
	h.sources, h.shelves = map[string]*catalog.Source{}, map[string]shelved{}
	var language *policy.Language
	for name := range h.toolsets {
		entry, ok := h.config.Servers[name]
		s := catalog.Source{Server: name, Trusted: true, Static: name == catalog.HTTPServer || name == catalog.PromptServer}
		if ok {
			var err error
			if s, err = sourceOf(name, entry, &language); err != nil {
				return err
			}
		}
		for key, t := range h.config.Tools {
			if t = t.WithDefaults(key); t.Server == name {
				if s.Entries == nil {
					s.Entries = map[string]catalog.Tool{}
				}
				s.Entries[key] = t
			}
		}
		h.sources[name] = &s
	}
	return nil
}

// offered returns the tools as the provider of a model takes them. One that it
// would refuse would cost the whole request, so it is left out, and told of.
func (h *Host) offered(s *catalog.Snapshot, name string) []tenon.Tool {
	tools, out := s.For(h.dialect(name))
	for _, w := range out {
		h.log.Warn("a tool is not offered: "+w.Reason, "server", w.Server, "tool", w.Remote, "model", name)
	}
	return tools
}

// dialect is the name of the schema rules that hold for a model.
func (h *Host) dialect(model string) string {
	provider, _, _ := strings.Cut(model, "/")
	if c, ok := h.config.Models[model]; ok {
		provider = c.Provider
	}
	return Dialect(provider)
}

// Dialect returns the name of the schema rules that hold for a provider; see
// [catalog.Providers]. Scripts take everything.
func Dialect(provider string) string {
	p, known := model.Lookup(provider)
	switch {
	case !known || p.Wire == model.WireScript:
		return ""
	case slices.Contains(catalog.Providers(), provider):
		return provider
	case p.Wire == model.WireAnthropic:
		return "anthropic"
	}
	return "openai-compatible"
}

// startWith is start with credentials of the caller, which are kept in memory.
func (h *Host) startWith(ctx context.Context, spec engine.Spec, s *catalog.Snapshot, c Credentials) error {
	h.brought.hold(spec.Run.ID, principalOf(spec.Run), c)
	err := h.start(ctx, spec, s)
	if err != nil {
		h.brought.drop(spec.Run.ID)
	}
	return err
}

// start begins a run with a snapshot, nil for none, which is stored in the same
// commit as the run. One that was stored before is named only; it is gone where
// the runs that had it were deleted since.
func (h *Host) start(ctx context.Context, spec engine.Spec, s *catalog.Snapshot) error {
	if s == nil {
		return h.engine.Start(ctx, spec)
	}
	if h.isStored(s.Digest()) {
		with := spec
		with.Uses = append(slices.Clip(spec.Uses), s.Digest())
		if err := h.engine.Start(ctx, with); tenon.ErrorCode(err) != tenon.CodeNotFound {
			return err
		}
	}
	spec.Blobs = append(slices.Clip(spec.Blobs), s.Encode())
	if err := h.engine.Start(ctx, spec); err != nil {
		return err
	}
	h.markStored(s.Digest())
	return nil
}

func (h *Host) isStored(digest string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.stored[digest]
	return ok
}

func (h *Host) markStored(digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.stored) >= maxSnapshots {
		clear(h.stored)
	}
	h.stored[digest] = struct{}{}
}

// maxSnapshots bounds what is kept in memory; a host sees few different ones.
const maxSnapshots = 64

func (h *Host) remember(digest string, s *catalog.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.snapshots) >= maxSnapshots {
		clear(h.snapshots)
	}
	h.snapshots[digest] = s
}

// snapshot returns the tools that a run began with.
func (h *Host) snapshot(ctx context.Context, digest string) (*catalog.Snapshot, error) {
	h.mu.Lock()
	s, ok := h.snapshots[digest]
	h.mu.Unlock()
	if ok {
		return s, nil
	}
	if digest == "" {
		s, _ = catalog.Build(nil)
		return s, nil
	}
	raw, err := h.store.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	if s, err = catalog.Decode(raw); err != nil {
		return nil, err
	}
	h.remember(digest, s)
	return s, nil
}
