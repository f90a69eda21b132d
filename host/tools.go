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
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/internal/deepstack"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// Problem is a server whose tools are missing, or a tool that had to be left out.
type Problem struct {
	Server string
	Err    error
}

// String returns the problem in one line, with the name of the server.
func (p Problem) String() string {
	text := strings.ReplaceAll(p.Err.Error(), "\n", " ")
	if p.Server == "" || strings.Contains(text, "server '"+p.Server+"'") {
		return text
	}
	return "server '" + p.Server + "': " + text
}

func (h toolsHandle) Snapshot(ctx context.Context, names ...string) (*catalog.Snapshot, []Problem, error) {
	return h.host.snapshotWith(ctx, nil, names...)
}

// snapshotWith is [Tools.Snapshot] with the toolsets of a question in addition. Their tools stay out of the caches.
func (h *Host) snapshotWith(ctx context.Context, own map[string]executor.Toolset,
	names ...string) (*catalog.Snapshot, []Problem, error) {
	snapshot, problems, err := h.listed(ctx, own, nil, names...)
	if err == nil && len(names)+len(own) == 0 && !slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Server != ""
	}) {
		for _, err := range h.inert(ctx, snapshot) {
			problems = append(problems, Problem{"", h.placed(err)})
		}
	}
	return snapshot, problems, err
}

// listed is [Host.snapshotWith] without the rules that match no tool, which a call does not need. If enough is not nil
// and returns true for the tools of a server, the listing does not wait for the others beyond lateTime.
func (h *Host) listed(ctx context.Context, own map[string]executor.Toolset, enough func(server string,
	tools []tenon.Tool) bool, names ...string) (*catalog.Snapshot, []Problem, error) {
	all := len(names)+len(own) == 0
	sets, sources := h.offerers()
	if len(own) > 0 {
		sets, sources = h.withQuestion(sets, sources, own)
		names = append(slices.Clip(names), slices.Collect(maps.Keys(own))...)
		slices.Sort(names)
		names = slices.Compact(names) // a question can add functions to the functions of the host
	}
	if all {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), func(name string) bool {
			return h.isHelper(name) || slices.Contains(h.cfg.Hidden, name)
		})
	}
	answers, err := h.listAll(ctx, sets, names, enough)
	if err != nil {
		return nil, nil, err
	}
	listings, absent, problems, err := h.listingsOf(names, sources, answers)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if set, ok := sets[name].(programSet); ok {
			for _, o := range set.checked {
				for _, err := range o.problems() {
					problems = append(problems, Problem{"", h.placed(err)})
				}
			}
		}
	}
	kept, removed := h.keptNames(names, sets)
	listings, absent = append(listings, kept...), append(absent, removed...)
	var snapshot *catalog.Snapshot
	var errs []error
	if len(own) > 0 {
		snapshot, errs = h.latest().Merge(listings)
		if len(absent) > 0 {
			snapshot = snapshot.Without(absent...)
		}
	} else {
		snapshot, errs = h.merged(listings, absent...)
	}
	for _, err := range errs {
		problems = append(problems, Problem{"", h.placed(err)})
	}
	return snapshot, problems, nil
}

// listed is the answer of a toolset that was asked for its tools.
type listed struct {
	tools []tenon.Tool
	held  pins.Result
	err   error
	ready bool // it answered at once
}

// listReady fills in the answers of tenon's own servers, and of the connected servers whose lists are valid and equal
// to their pins. That takes no waiting and no goroutine. It returns the indexes of the others.
func (h *Host) listReady(ctx context.Context, sets map[string]executor.Toolset, names []string,
	answers []listed) (slow []int) {
	all, direct := h.connections(), h.callsDirectly()
	for i, name := range names {
		if k, ok := sets[name].(kind); ok {
			answers[i] = listed{tools: k.tools, ready: true}
			continue
		}
		if s := all[name]; s != nil && direct {
			if tools, ok := s.Listed(); ok {
				held, err := h.pins.Check(ctx, name, tools)
				if err == nil && len(held.Blocked()) == 0 {
					answers[i] = listed{tools: tools, held: held, ready: true}
					continue
				}
			}
		}
		slow = append(slow, i)
	}
	return slow
}

// lateTime is how long a call waits for the lists of other servers than the one that has its tool. The other lists may
// change the name of the tool. A server that does not answer in time counts as down, and keeps its names.
const lateTime = time.Second

// lateness ends a listing that has lasted for lateTime, as soon as the tools of one server are enough.
type lateness struct {
	enough func(server string, tools []tenon.Tool) bool
	cancel func()

	mu     sync.Mutex
	late   bool
	listed map[string][]tenon.Tool // by server
}

// begin is called after lateTime.
func (l *lateness) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = true
	for server, tools := range l.listed {
		if l.enough(server, tools) {
			l.cancel()
		}
	}
}

// add takes the tools of a server.
func (l *lateness) add(server string, tools []tenon.Tool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late && l.enough(server, tools) {
		l.cancel()
	}
	if l.listed == nil {
		l.listed = map[string][]tenon.Tool{}
	}
	l.listed[server] = tools
}

// listAll asks the named toolsets for their tools, several at a time, and compares these with their pins. enough is
// described at [Host.listed].
func (h *Host) listAll(ctx context.Context, sets map[string]executor.Toolset, names []string,
	enough func(server string, tools []tenon.Tool) bool) ([]listed, error) {
	for _, name := range names {
		if _, ok := sets[name]; !ok {
			// List only configured servers: tenon's own do not help the user.
			known := slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), catalog.IsReserved)
			return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", tenon.Visible(name),
				nearest(name, known))
		}
	}
	answers := make([]listed, len(names))
	slow := h.listReady(ctx, sets, names, answers)
	if len(slow) == 0 {
		return answers, nil
	}
	// Starting a process costs CPU: twice the cores at a time is the fastest.
	limit := make(chan struct{}, 2*runtime.NumCPU())
	hurried, cancel := context.WithCancel(ctx)
	defer cancel()
	late := &lateness{enough: enough, cancel: cancel}
	for i, name := range names {
		if enough != nil && answers[i].ready {
			late.add(name, answers[i].tools)
		}
	}
	if enough != nil {
		timer := time.AfterFunc(lateTime, late.begin)
		defer timer.Stop()
	}
	var wg sync.WaitGroup
	for _, i := range slow {
		name := names[i]
		t, s := sets[name], h.connections()[name]
		wg.Go(func() {
			deepstack.Work()
			if s != nil && s.Status().State != servers.StateReady { // hanging servers do not hold up a ready one
				limit <- struct{}{}
				defer func() { <-limit }()
			}
			ctx := ctx
			if !h.config.Servers[name].Required {
				ctx = hurried
			}
			a := &answers[i]
			if a.tools, a.err = t.Tools(ctx); a.err == nil {
				a.held, a.err = h.pins.Check(ctx, name, a.tools)
			}
			if s != nil && a.err == nil && len(a.held.Blocked()) > 0 && !h.cfg.Untrusted {
				// The list may be a kept one, from when the server differed.
				switch now, err := s.Now(ctx); {
				case err == nil && !tenon.SameTools(now, a.tools):
					a.tools = now
					a.held, a.err = h.pins.Check(ctx, name, now)
				case err != nil && hurried.Err() != nil:
					a.err = err // nobody knows yet whether the tools differ
				}
			}
			if enough != nil && a.err == nil {
				late.add(name, a.tools)
			}
		})
	}
	wg.Wait()
	return answers, nil
}

// listingsOf returns the tools of the answers that may be offered. absent are the servers that did not answer. Their
// listings have their last tools, which are not offered, but still affect the names of other tools.
func (h *Host) listingsOf(names []string, sources map[string]*catalog.Source, answers []listed) (
	listings []*catalog.Listing, absent []string, problems []Problem, err error) {
	for i, name := range names {
		entry, configured := h.config.Servers[name]
		if err := answers[i].err; err != nil {
			if configured && entry.Required && !h.cfg.Untrusted {
				return nil, nil, nil, tenon.Errorf(tenon.ErrorCode(err), "server '%s' is required: %w", name, err)
			}
			problems = append(problems, Problem{name, err})
			if s := h.connections()[name]; s != nil {
				if tools := s.LastListed(); len(tools) > 0 {
					listings = append(listings, h.listing(name, sources[name], tools, nil, nil))
					absent = append(absent, name)
				}
			}
			continue
		}
		blocked, err := h.judgePins(name, answers[i].held)
		if err != nil {
			problems = append(problems, Problem{name, err})
		}
		listings = append(listings, h.listing(name, sources[name], answers[i].tools, blocked, answers[i].held.New))
	}
	return listings, absent, problems, nil
}

func (h toolsHandle) Known(ctx context.Context) (*catalog.Snapshot, error) {
	sets, sources := h.host.offerers()
	var listings []*catalog.Listing
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		var tools []tenon.Tool
		var err error
		s, connects := h.host.connections()[name]
		switch {
		case h.host.isHelper(name) || slices.Contains(h.host.cfg.Hidden, name):
			continue
		case connects:
			ok := false
			if tools, ok = s.Remembered(); !ok {
				tools, _ = s.Listed()
			}
		default:
			tools, err = sets[name].Tools(ctx)
		}
		if err == nil && len(tools) > 0 {
			listings = append(listings, h.host.listing(name, sources[name], tools, nil, nil))
		}
	}
	kept, removed := h.host.keptNames(slices.Collect(maps.Keys(sets)), sets)
	snapshot, _ := h.host.merged(append(listings, kept...), removed...)
	return snapshot, nil
}

// shapedListing is the last result of shaping the tools of one server. It is kept so that only changed tools are shaped
// again.
type shapedListing struct {
	source  *catalog.Source // how the tools were filtered and named; a new server has a new source
	tools   []tenon.Tool    // as the server returned them; an identical array is an identical list
	blocked map[string]string
	fresh   map[string]string
	listing *catalog.Listing
}

// listing shapes the tools of a server, or returns the last result for the same tools. If the server was removed or
// replaced in the meantime, the result is not kept.
func (h *Host) listing(name string, source *catalog.Source, tools []tenon.Tool, blocked,
	fresh map[string]string) *catalog.Listing {
	h.mu.Lock()
	last, ok := h.listings[name]
	h.mu.Unlock()
	if ok && last.source == source && (tenon.SameTools(last.tools, tools) || reflect.DeepEqual(last.tools, tools)) &&
		maps.Equal(last.blocked, blocked) && maps.Equal(last.fresh, fresh) {
		return last.listing
	}
	src := *source
	src.Tools, src.Blocked, src.Fresh = tools, blocked, fresh
	s := catalog.Shape(src)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sources[name] == source {
		h.listings[name] = shapedListing{source: source, tools: tools, blocked: blocked, fresh: fresh, listing: s}
	}
	return s
}

// merged returns the snapshot of several listings, without the tools of the servers that are absent. It reuses the last
// snapshot if the listings are the same.
func (h *Host) merged(listings []*catalog.Listing, absent ...string) (*catalog.Snapshot, []error) {
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last.snapshot == nil || !slices.Equal(last.listings, listings) || !slices.Equal(last.absent, absent) {
		before := last.whole
		last = merge{listings: listings, absent: absent, sights: map[string]sight{}}
		last.whole, last.problems = before.Merge(listings)
		last.snapshot = last.whole
		if len(absent) > 0 {
			last.snapshot = last.whole.Without(absent...)
		}
		h.mu.Lock()
		h.last = last
		h.mu.Unlock()
	}
	return last.snapshot, last.problems
}

// latest returns the last merge of all listings, or nil if there is none. Merging from it is cheaper.
func (h *Host) latest() *catalog.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.whole
}

// merge is a snapshot and its input.
type merge struct {
	listings []*catalog.Listing
	absent   []string
	whole    *catalog.Snapshot // the snapshot with the tools of the absent servers
	snapshot *catalog.Snapshot
	problems []error
	sights   map[string]sight // keyed by agent, groups and the limit of the provider; under the host's lock
}

// sight is the part of a snapshot that an agent sees.
type sight struct {
	tools  *catalog.Snapshot
	listed *catalog.Snapshot // the tools that the model sees without a search
	own    int               // number of tools that are offered only to runs that have a use for them
}

// sight returns the part of a snapshot that an agent sees. It is computed once, not for each run.
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
	seen = sight{tools: h.deferring(h.visible(s, of, a), most)}
	seen.listed = seen.tools.Only(func(t *tenon.Tool) bool { return !isDeferred(t) })
	for _, t := range seen.listed.Tools() {
		if h.isHelper(t.Server) {
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

// openSources makes the sources of all servers, as configured.
func (h *Host) openSources() error {
	h.sources, h.listings = map[string]*catalog.Source{}, map[string]shapedListing{}
	language := sync.OnceValues(policy.NewToolLanguage)
	for name := range h.toolsets {
		entry, ok := h.config.Servers[name]
		_, own := h.cfg.Toolsets[name]
		s := catalog.Source{Server: name, Trusted: true, Static: h.kinds[name].static, Named: own}
		if ok {
			var err error
			if s, err = sourceOf(name, entry, language); err != nil {
				return err
			}
		}
		s.Identity, s.Facts = h.serverID(name), h.serverFacts(name, "")
		if config.IsTarget(s.Identity) {
			s.Target = h.targetOf(name)
		}
		s.Entries = h.entriesOf(name)
		h.sources[name] = &s
	}
	return nil
}

// offered returns the tools in the format of a model's provider. It leaves out, with a warning, tools that the provider
// would refuse, because they would fail the whole request.
func (h *Host) offered(s *catalog.Snapshot, name string) []tenon.Tool {
	tools, out := s.For(h.dialect(name))
	for _, w := range out {
		h.log.Warn("a tool is not offered: "+w.Reason, "server", w.Server, "tool", w.Remote, "model", name)
	}
	return tools
}

// dialect returns the name of the schema rules for a model.
func (h *Host) dialect(model string) string {
	provider, _, _ := strings.Cut(model, "/")
	if c, ok := h.config.Models[model]; ok {
		provider = c.Provider
	}
	return Dialect(provider)
}

// Dialect returns the name of the schema rules for a provider; see [catalog.Providers]. Scripted models accept all
// schemas.
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

// startWith is start with the caller's credentials, which are kept in memory.
func (h *Host) startWith(ctx context.Context, spec engine.Spec, s *catalog.Snapshot, c Credentials) error {
	h.brought.hold(spec.Run.ID, spec.Run.Owner(), c)
	err := h.start(ctx, spec, s)
	if err != nil {
		h.brought.drop(spec.Run.ID)
	}
	return err
}

// start begins a run with a snapshot, which may be nil, and stores both in one commit. A snapshot that was stored
// before is only referenced. If its runs were deleted since, it is stored again.
func (h *Host) start(ctx context.Context, spec engine.Spec, s *catalog.Snapshot) error {
	if s == nil {
		return h.launch(ctx, spec)
	}
	if h.isStored(s.Digest()) {
		with := spec
		with.Uses = append(slices.Clip(spec.Uses), s.Digest())
		if err := h.launch(ctx, with); tenon.ErrorCode(err) != tenon.CodeNotFound {
			return err
		}
	}
	spec.Blobs = append(slices.Clip(spec.Blobs), s.Encode())
	if err := h.launch(ctx, spec); err != nil {
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

// maxSnapshots bounds the snapshots in memory. A host sees few different ones.
const maxSnapshots = 64

func (h *Host) remember(digest string, s *catalog.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.snapshots) >= maxSnapshots {
		clear(h.snapshots)
	}
	h.snapshots[digest] = s
}

// known returns the snapshots in memory.
func (h *Host) known() []*catalog.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.snapshots))
}

// snapshot returns the tools with which a run began.
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
