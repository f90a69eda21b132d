package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// sets returns the toolsets as they are now. The map is never changed, only replaced.
func (h *Host) sets() map[string]tenon.Toolset {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.toolsets
}

// offerers returns the toolsets and how the tools of each are taken, as they are at one
// moment.
func (h *Host) offerers() (map[string]tenon.Toolset, map[string]*catalog.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.toolsets, h.sources
}

// AddServer connects to a server that the configuration does not name, and offers its
// tools from the next run on, filtered, named and transformed as the entry says. Runs
// that are under way keep the tools that they began with. The policy of the entry is the
// server's block of rules, between policy.defaults and those of groups, agents and tools;
// only redact cannot be said here: what the store encrypts is settled when a host is
// opened. It starts the server; where that is not possible it is not added. Errors:
// config (the name is taken, a rule or a condition cannot be read), and those of
// connecting.
func (h *Host) AddServer(ctx context.Context, name string, entry servers.Config) error {
	if err := checkServer(name, entry); err != nil {
		return err
	}
	entry = entry.WithDefaults()
	if entry.Policy.Redact != nil {
		return tenon.Errorf(tenon.CodeConfig, "server '%s': policy.redact of a server that is added while the host is open would come too late for what is stored already; write it under policy.defaults", name)
	}
	if _, err := h.law().rules.WithServer(name, &entry.Policy); err != nil {
		return tenon.Errorf(tenon.CodeConfig, "server '%s': policy.%w", name, err)
	}
	src, err := sourceOf(name, entry, new(*policy.Language))
	if err != nil {
		return err
	}
	kept, vault := h.cfg.serversPath(), h.cfg.vault()
	s := servers.New(name, entry, servers.Options{LookupEnv: h.cfg.LookupEnv, Version: h.cfg.Version, Logger: h.log, Logs: kept, Live: true, Frames: !h.cfg.Brief, Vault: vault, Learned: h.redactor.Add, Mask: h.redactor.Text, Admit: h.onlyPublic(), Slow: h.cfg.Slow,
		Reaper: &h.fleet.reaper,
		Resolve: func(context.Context) (servers.Config, error) {
			for _, v := range entry.SecretValues() {
				h.redactor.Add(v)
			}
			return entry, nil
		}})
	if _, err := s.Tools(ctx); err != nil {
		_ = s.Close() // what it says at its end is of no use: it never began
		return err
	}
	if err := h.add(name, h.wrapped(name, s), src, s, &entry.Policy); err != nil {
		_ = s.Close()
		return err
	}
	return nil
}

// AddToolset offers the tools of a toolset of the caller's own from the next run on, as
// [Config.Toolsets] does from the beginning. Errors: config (the name is taken).
func (h *Host) AddToolset(name string, t tenon.Toolset) error {
	if err := checkToolset(name, t); err != nil {
		return err
	}
	return h.add(name, h.wrapped(name, newOwnTools(name, t, h.log)), catalog.Source{Server: name, Trusted: true}, nil, nil)
}

// AddFunctions offers functions of the program as the tools of a server of this name,
// from the next run on. Errors: config (the name is taken, or says nothing; what is wrong
// with a function).
func (h *Host) AddFunctions(name string, list ...Function) error {
	t, err := newFunctions(list)
	if err != nil {
		return err
	}
	return h.AddToolset(name, t)
}

func checkToolset(name string, t tenon.Toolset) error {
	if t == nil {
		return tenon.Errorf(tenon.CodeConfig, "toolset '%s' is nil", tenon.Visible(name))
	}
	return checkName(name)
}

func checkName(name string) error {
	if name == "" || name != tenon.Visible(name) || strings.ContainsAny(name, " /\t\n") {
		return tenon.Errorf(tenon.CodeConfig, "'%s' is no name of a server", tenon.Visible(name))
	}
	if isReserved(name) {
		return tenon.Errorf(tenon.CodeConfig, "'%s' is a name of tenon's own tools", name)
	}
	return nil
}

// checkServer refuses an entry that no file could have: a Go program may fill in its
// configuration itself, which nobody has checked then.
func checkServer(name string, entry servers.Config) error {
	switch {
	case entry.Command == "" && entry.URL == "":
		return tenon.Errorf(tenon.CodeConfig, "server '%s': Command or URL is required", tenon.Visible(name))
	case entry.Command != "" && entry.URL != "":
		return tenon.Errorf(tenon.CodeConfig, "server '%s': Command and URL together: a server has one of them", tenon.Visible(name))
	}
	return checkName(name)
}

// isReserved reports whether a name is that of a toolset that tenon itself brings. The
// functions of a program are the program's own.
func isReserved(name string) bool {
	return slices.Contains(catalog.OwnServers(), name) && name != FunctionServer
}

func (h *Host) add(name string, t tenon.Toolset, src catalog.Source, s *servers.Server, b *policy.Block) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.toolsets[name]; ok {
		return tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already", name)
	}
	if b != nil {
		rules, err := h.law().rules.WithServer(name, b)
		if err != nil {
			return err
		}
		h.enact(rules) // before the first of its tools can be called
	}
	for key, e := range h.config.Tools {
		if e = e.WithDefaults(key); e.Server == name {
			if src.Entries == nil {
				src.Entries = map[string]catalog.Tool{}
			}
			src.Entries[key] = e
		}
	}
	h.toolsets, h.sources = maps.Clone(h.toolsets), maps.Clone(h.sources)
	h.toolsets[name], h.sources[name] = t, &src
	if s != nil {
		h.servers = maps.Clone(h.servers)
		h.servers[name] = s
		h.fleet.launch(s)
	}
	return nil
}

// RemoveServer takes a server, or a toolset of the caller's own, out of use, with exactly
// its tools, and ends its connection. A call of one of its tools that a run makes later
// on fails. Errors: not_found (also for tenon's own tools).
func (h *Host) RemoveServer(name string) error {
	h.mu.Lock()
	_, ok := h.toolsets[name]
	if !ok || isReserved(name) {
		h.mu.Unlock()
		return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(name))
	}
	h.toolsets, h.sources, h.servers = maps.Clone(h.toolsets), maps.Clone(h.sources), maps.Clone(h.servers)
	s := h.servers[name]
	delete(h.toolsets, name)
	delete(h.sources, name)
	delete(h.servers, name)
	delete(h.shelves, name)
	var err error
	if _, ok := h.config.Servers[name]; !ok && s != nil { // the block came with it
		var rules *policy.Rules
		if rules, err = h.law().rules.WithServer(name, nil); err == nil {
			h.enact(rules)
		}
	}
	h.mu.Unlock()
	if s == nil {
		return err
	}
	return errors.Join(err, h.fleet.drop(s))
}

// sourceOf says how the tools of a server are taken, as its entry says. The language of
// conditions is made where it is first needed.
func sourceOf(name string, entry servers.Config, language **policy.Language) (catalog.Source, error) {
	s := catalog.Source{Server: name, About: entry.Title + " " + entry.Description, Trusted: entry.IsTrusted(), Static: !entry.LoadsTools(), Include: entry.Include,
		Exclude: entry.Exclude, Naming: entry.Naming, Transform: entry.Transform, Simple: entry.Schema.Types == catalog.TypesSimple,
		Options: entry.ProviderOptions, Defer: entry.Defer}
	if entry.Where == "" {
		return s, nil
	}
	var err error
	if *language == nil {
		if *language, err = policy.NewToolLanguage(); err != nil {
			return s, err
		}
	}
	if s.Where, err = (*language).Condition(entry.Where); err != nil {
		return s, tenon.Errorf(tenon.CodeConfig, "servers.%s.where: %w", name, err)
	}
	return s, nil
}
