package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// sets returns the present toolsets. The map is never changed, only replaced.
func (h *Host) sets() map[string]executor.Toolset {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.toolsets
}

// offerers returns the toolsets and the sources that filter and name their tools, as of one moment.
func (h *Host) offerers() (map[string]executor.Toolset, map[string]*catalog.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.toolsets, h.sources
}

func (h serversHandle) Add(ctx context.Context, name string, entry servers.Config) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !entry.IsEnabled() {
		return tenon.Errorf(tenon.CodeConfig, "servers.%s.enabled: the entry is disabled, so the server is not "+
			"started and not added; leave the field nil, or add the server when it is wanted", name)
	}
	if err := h.host.checkFree(name); err != nil {
		return err
	}
	ctx, err := h.host.reserve(ctx, name) // before its command is started
	if err != nil {
		return err
	}
	defer h.host.unreserve(name)
	if err := h.host.config.CheckEntry(name, entry, slices.Collect(maps.Keys(h.host.cfg.Models))...); err != nil {
		return err
	}
	if err := h.host.config.GuardServer(name, entry); err != nil {
		return err
	}
	entry = entry.WithDefaults()
	if entry.Policy.Redact != nil {
		return tenon.Errorf(tenon.CodeConfig, "servers.%s.policy.redact: it would not apply to data already stored, "+
			"because the server is added to an open host; write it under policy.defaults", name)
	}
	entry = h.host.config.Narrowed(name, entry)
	if _, err := h.host.ruleset().Layers.WithServer(h.host.serverID(name), &entry.Policy, nil); err != nil {
		return tenon.Errorf(tenon.CodeConfig, "servers.%s.policy.%w", name, err)
	}
	src, err := sourceOf(name, entry, sync.OnceValues(policy.NewToolLanguage))
	if err != nil {
		return err
	}
	src.Identity, src.Facts = h.host.serverID(name), entryFacts(entry.URL, entry.Command, entry.Args)
	options, redactor := h.host.serverOptions(name, h.host.cfg.serversPath()), &h.host.serverPool.redactor
	options.TimeoutKey, options.RefreshTools = anyTimeoutKey, true
	options.Resolve = func(context.Context) (servers.Config, error) {
		for _, v := range entry.SecretValues() {
			redactor.Add(v)
		}
		return entry, nil
	}
	s := servers.New(name, entry, options)
	if _, err := s.Tools(ctx); err != nil {
		if context.Cause(ctx) == errClosed {
			err = errClosed
		}
		return errors.Join(err, s.Close())
	}
	if err := h.host.add(name, h.host.wrapped(name, s), src, s, &entry); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// errClosed is the answer to an addition to a host that is closed. A server that was added would never be ended.
var errClosed = &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
	Message: "the host is closed, so nothing can be added to it; open another one"}

// reserve keeps the name of a server while the server starts, so that only one is started under it. The returned
// context ends when the host is closed, which waits for unreserve. Errors: config (there is a server of this name, or
// one is being added), cancelled (the host is closed).
func (h *Host) reserve(ctx context.Context, name string) (context.Context, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errClosed
	case h.toolsets[name] != nil:
		return nil, tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already", name)
	case h.adding[name] != nil:
		return nil, tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already: it is being added", name)
	case h.adding == nil:
		h.adding = map[string]context.CancelCauseFunc{}
	}
	ctx, h.adding[name] = context.WithCancelCause(ctx)
	h.adds.Add(1)
	return ctx, nil
}

func (h *Host) unreserve(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.adding[name](nil)
	delete(h.adding, name)
	h.adds.Done()
}

// refuseMore makes the host refuse further servers and toolsets. It ends additions under way, and waits for them.
func (h *Host) refuseMore() {
	h.mu.Lock()
	h.closed = true
	for _, cancel := range h.adding {
		cancel(errClosed)
	}
	h.mu.Unlock()
	h.adds.Wait()
}

func (h toolsHandle) Add(_ context.Context, name string, t tenon.Toolset) error {
	if err := checkToolset(name, t); err != nil {
		return err
	}
	return h.host.add(name, h.host.wrapped(name, newOwnTools(name, t, h.host.log)), catalog.Source{Server: name,
		Trusted: true,
		Named:   true}, nil, nil)
}

// checkFree refuses the name of a configured server, also of a disabled one: rules and grants are keyed by its
// identity.
func (h *Host) checkFree(name string) error {
	entry, ok := h.config.Servers[name]
	switch {
	case !ok:
		return nil
	case entry.IsEnabled():
		return tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already", name)
	}
	return tenon.Errorf(tenon.CodeConfig, "'%s' is the name of a configured server, which is disabled; give the other "+
		"one another name, or remove the entry", name)
}

func checkToolset(name string, t tenon.Toolset) error {
	if t == nil {
		return tenon.Errorf(tenon.CodeConfig, "toolset '%s' is nil", tenon.Visible(name))
	}
	return checkName(name)
}

func checkName(name string) error {
	if name == "" || name != tenon.Visible(name) || strings.ContainsAny(name, " /\t\n") {
		return tenon.Errorf(tenon.CodeConfig, "'%s' is not a valid name of a server", tenon.Visible(name))
	}
	if catalog.IsReserved(name) {
		return tenon.Errorf(tenon.CodeConfig, "'%s' is a name of tenon's own tools", name)
	}
	return nil
}

func (h *Host) add(name string, t executor.Toolset, src catalog.Source, s *servers.Server,
	entry *servers.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	if _, ok := h.toolsets[name]; ok || entry == nil && h.adding[name] != nil {
		return tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already", name)
	}
	if err := h.checkFree(name); err != nil {
		return err
	}
	// With one more server, a condition may not say any more which tools it is about.
	removed := maps.Clone(h.removed)
	delete(removed, name)
	rules, more := h.ruleset().Layers, h.programSetsOf(h.toolsets, nil, removed)+1
	differ := h.config.NamesDiffer(more)
	if entry != nil {
		var err error
		rules, err = rules.WithServer(h.serverID(name), &entry.Policy, h.config.Aliases(name, *entry))
		if err != nil {
			return err
		}
		differ = h.config.NamesDifferWith(more, name, *entry)
	}
	if err := rules.CheckNames(differ); err != nil {
		return err
	}
	if entry != nil {
		h.setRules(rules) // the rules must hold before one of its tools can be called
	}
	h.joined++
	src.Entries, src.Joined = h.entriesOf(name), h.joined
	if kept := h.removed[name]; kept != nil { // it comes back, and gets its names back
		src.Joined = kept.Joined()
	}
	h.dropRemoved(name)
	h.toolsets, h.sources = maps.Clone(h.toolsets), maps.Clone(h.sources)
	h.toolsets[name], h.sources[name] = t, &src
	if s != nil {
		h.servers, h.entries = maps.Clone(h.servers), maps.Clone(h.entries)
		if h.entries == nil {
			h.entries = map[string]servers.Config{}
		}
		h.servers[name], h.entries[name] = s, *entry
		h.serverPool.launch(s)
	}
	return nil
}

// A removed server keeps the names of its tools, as one that is down does: a model or a rule that knows a name must not
// reach the tool of another server under it. These bounds say how many removed servers, and how many of their tools, a
// host remembers; the servers that were removed first are forgotten first.
const (
	maxRemoved      = 4096
	maxRemovedTools = 20_000
)

// wasRemoved reports whether a server or toolset was removed from the open host.
func (h *Host) wasRemoved(name string) bool { return h.removedListing(name) != nil }

func (h *Host) removedListing(name string) *catalog.Listing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removed[name]
}

// keepRemoved remembers a removed server with the names of its tools. The caller holds the lock.
func (h *Host) keepRemoved(name string) {
	listing := h.listings[name].listing
	if listing == nil { // its tools were never offered
		listing = catalog.Shape(catalog.Source{Server: name, Joined: h.sources[name].Joined})
	}
	h.removed = maps.Clone(h.removed)
	if h.removed == nil {
		h.removed = map[string]*catalog.Listing{}
	}
	h.removed[name], h.removals = listing.Kept(), append(h.removals, name)
	tools := 0
	for _, kept := range h.removed {
		tools += kept.Len()
	}
	for len(h.removals) > 1 && (len(h.removals) > maxRemoved || tools > maxRemovedTools) {
		tools -= h.removed[h.removals[0]].Len()
		h.dropRemoved(h.removals[0])
	}
}

// dropRemoved forgets a removed server. The caller holds the lock.
func (h *Host) dropRemoved(name string) {
	if h.removed[name] == nil {
		return
	}
	h.removed = maps.Clone(h.removed)
	delete(h.removed, name)
	h.removals = slices.DeleteFunc(h.removals, func(n string) bool { return n == name })
}

// keptNames returns the removed servers, and the listings with the names of their tools, where names has all servers of
// which sets are the toolsets. A list of some servers only has other names.
func (h *Host) keptNames(names []string, sets map[string]executor.Toolset) (listings []*catalog.Listing,
	removed []string) {
	h.mu.Lock()
	all := h.removed
	h.mu.Unlock()
	if len(all) == 0 {
		return nil, nil
	}
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
	}
	for name := range sets {
		if !asked[name] && !catalog.IsReserved(name) && !slices.Contains(h.cfg.Hidden, name) {
			return nil, nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if sets[name] == nil && all[name].Len() > 0 {
			listings, removed = append(listings, all[name]), append(removed, name)
		}
	}
	return listings, removed
}

func (h serversHandle) Remove(_ context.Context, name string) error {
	h.host.mu.Lock()
	_, ok := h.host.toolsets[name]
	if !ok || catalog.IsReserved(name) {
		h.host.mu.Unlock()
		return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(name))
	}
	h.host.toolsets, h.host.sources = maps.Clone(h.host.toolsets), maps.Clone(h.host.sources)
	h.host.servers = maps.Clone(h.host.servers)
	s := h.host.servers[name]
	h.host.keepRemoved(name)
	delete(h.host.toolsets, name)
	delete(h.host.sources, name)
	delete(h.host.servers, name)
	delete(h.host.listings, name)
	h.host.entries = maps.Clone(h.host.entries)
	delete(h.host.entries, name)
	var err error
	if _, ok := h.host.config.Servers[name]; !ok && s != nil { // Add added the block
		var rules *policy.Layers
		if rules, err = h.host.ruleset().Layers.WithServer(h.host.serverID(name), nil, nil); err == nil {
			h.host.setRules(rules)
		}
	}
	h.host.mu.Unlock()
	if s == nil {
		return err
	}
	return errors.Join(err, h.host.serverPool.drop(s))
}

// sourceOf returns the source that filters and names the tools of a server, as its entry says. It calls language only
// if there is a condition.
func sourceOf(name string, entry servers.Config, language func() (*policy.Language, error)) (catalog.Source, error) {
	s := catalog.Source{Server: name, About: entry.Title + " " + entry.Description, Trusted: entry.IsTrusted(),
		Static: !entry.LoadsTools(), Include: entry.Include,
		Exclude: entry.Exclude, Naming: entry.Naming, Transform: entry.Transform,
		Simple:  entry.Schema.Types == catalog.TypesSimple,
		Formats: entry.Schema.Formats == catalog.FormatsAssertion,
		Options: entry.ProviderOptions, Defer: entry.Defer}
	compile := func(text string) (*policy.Condition, error) {
		if text == "" {
			return nil, nil
		}
		lang, err := language()
		if err != nil {
			return nil, err
		}
		c, err := lang.Condition(text)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "servers.%s.where: %w", name, err)
		}
		return c, nil
	}
	for _, f := range entry.Filters {
		where, err := compile(f.Where)
		if err != nil {
			return s, err
		}
		s.Floors = append(s.Floors, catalog.Filter{By: f.By, Include: f.Include, Exclude: f.Exclude, Where: where,
			Transform: f.Transform, Entries: f.Entries})
	}
	var err error
	s.Where, err = compile(entry.Where)
	return s, err
}
