package host

import (
	"context"
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
// that are under way keep what they began with. Rules about single tools come from the
// host's configuration: the entry has no policy of its own. It starts the server; where
// that is not possible it is not added. Errors: config (the name is taken, the entry has
// a policy or a condition that cannot be read), and those of connecting.
func (h *Host) AddServer(ctx context.Context, name string, entry servers.Config) error {
	entry = entry.WithDefaults()
	if err := checkName(name); err != nil {
		return err
	}
	if entry.Policy.Approval.Mode != "" || entry.Policy.Timeout != 0 {
		return tenon.Errorf(tenon.CodeConfig, "server '%s': a server that is added while the host is open has no policy of its own; write it under policy.defaults or tools", name)
	}
	src, err := sourceOf(name, entry, new(*policy.Language))
	if err != nil {
		return err
	}
	kept, vault := h.cfg.serversPath(), h.cfg.vault()
	s := servers.New(name, entry, servers.Options{LookupEnv: h.cfg.LookupEnv, Version: h.cfg.Version, Logger: h.log, Logs: kept, Live: true, Vault: vault, Learned: h.redactor.Add,
		Resolve: func(context.Context) (servers.Config, error) {
			h.redactor.Add(entry.Auth.Secret)
			h.redactor.Add(entry.Auth.ClientSecret)
			return entry, nil
		}})
	if _, err := s.Tools(ctx); err != nil {
		_ = s.Close() // what it says at its end is of no use: it never began
		return err
	}
	if err := h.add(name, h.wrapped(name, s), src, s); err != nil {
		_ = s.Close()
		return err
	}
	return nil
}

// AddToolset offers the tools of a toolset of the caller's own from the next run on, as
// [Config.Toolsets] does from the beginning. Errors: config (the name is taken).
func (h *Host) AddToolset(name string, t tenon.Toolset) error {
	if err := checkName(name); err != nil {
		return err
	}
	return h.add(name, h.wrapped(name, t), catalog.Source{Server: name, Trusted: true}, nil)
}

func checkName(name string) error {
	if name == "" || name != tenon.Visible(name) || strings.ContainsAny(name, " /\t\n") {
		return tenon.Errorf(tenon.CodeConfig, "'%s' is no name of a server", tenon.Visible(name))
	}
	return nil
}

func (h *Host) add(name string, t tenon.Toolset, src catalog.Source, s *servers.Server) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.toolsets[name]; ok {
		return tenon.Errorf(tenon.CodeConfig, "there is a server '%s' already", name)
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
	}
	return nil
}

// RemoveServer takes a server, or a toolset of the caller's own, out of use, with exactly
// its tools, and ends its connection. A call of one of its tools that a run makes later
// on fails. Errors: not_found (also for tenon's own tools).
func (h *Host) RemoveServer(name string) error {
	h.mu.Lock()
	_, ok := h.toolsets[name]
	if !ok || slices.Contains([]string{artifactServer, finderServer, handoffServer, catalog.AgentServer, catalog.HTTPServer, catalog.PromptServer}, name) {
		h.mu.Unlock()
		return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'", tenon.Visible(name))
	}
	h.toolsets, h.sources, h.servers = maps.Clone(h.toolsets), maps.Clone(h.sources), maps.Clone(h.servers)
	s := h.servers[name]
	delete(h.toolsets, name)
	delete(h.sources, name)
	delete(h.servers, name)
	delete(h.shelves, name)
	h.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
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
