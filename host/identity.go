package host

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// builtin begins the identities of tenon's own tools, which no configuration defines.
const builtin = "builtin:"

// serverID returns the identity of a server or toolset by its name in this host. Rules
// and everything in the store are keyed by it; see [config.Config.ServerID].
func (h *Host) serverID(name string) string {
	return cmp.Or(h.config.ServerID(name), string(config.LayerProgram)+":"+name)
}

// targetOf returns the digest of the command that a server starts or the URL that it calls, or "" for a toolset
// without a target.
func (h *Host) targetOf(name string) string {
	if digest, ok := h.targets[name]; ok {
		return digest
	}
	entry, ok := h.entry(name)
	if !ok {
		return ""
	}
	return config.TargetDigest(entry)
}

// indexTargets computes the digests of the configured servers once: each decision about a call needs one.
func (h *Host) indexTargets() {
	h.targets = make(map[string]string, len(h.config.Servers))
	for name, entry := range h.config.Servers {
		h.targets[name] = config.TargetDigest(entry)
	}
}

// serverFor returns the name of the server that has a target in this host, otherwise the given name. The run of another
// process may use another name: in a tool table the target has the table's name, here it has the name of its entry.
func (h *Host) serverFor(name, target string) string {
	if target == "" || catalog.IsReserved(name) || h.targetOf(name) == target {
		return name
	}
	all := h.connections()
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if h.targetOf(other) == target {
			return other
		}
	}
	return name
}

// entry returns the entry of a server, also of a server that was added to the open host.
func (h *Host) entry(server string) (servers.Config, bool) {
	if entry, ok := h.config.Servers[server]; ok {
		return entry, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	entry, ok := h.entries[server]
	return entry, ok
}

// identify returns the identity of a tool by its remote name and the name of its server in this host. A step of a
// workflow has an identity only within a run; see [Host.identifyIn].
func (h *Host) identify(server, remote string) executor.Identity {
	id := executor.Identity{ID: policy.ID{Server: h.serverID(server), Remote: remote}, Target: h.targetOf(server)}
	key, entry := h.kindEntry(server, remote)
	if identify := h.kinds[server].identify; identify != nil {
		id.Server, id.Target = identify(key, remote)
	} else if key != "" {
		id.Server, id.Target = h.config.ToolID(key), config.ToolDigest(entry)
	}
	return id
}

// identifyIn returns the identity of a tool that a run calls. The identity of a step that is a request contains its
// workflow, so that equal names in another file are another tool.
func (h *Host) identifyIn(ctx context.Context, run, server, remote string) (executor.Identity, error) {
	if !h.kinds[server].requests {
		return h.identify(server, remote), nil
	}
	digest, err := h.flows.Digest(ctx, run)
	return executor.Identity{ID: policy.ID{Server: config.TargetID(digest), Remote: remote}, Target: digest}, err
}

// kindEntry finds the entry of a tool without an MCP server.
func (h *Host) kindEntry(server, remote string) (key string, entry catalog.Tool) {
	if !catalog.IsReserved(server) {
		return "", catalog.Tool{}
	}
	key = h.entryKeys[policy.ID{Server: server, Remote: remote}]
	return key, h.config.Tools[key]
}

// indexEntries indexes the entries of tools that no MCP server has.
func (h *Host) indexEntries() {
	h.entryKeys = map[policy.ID]string{}
	for key, t := range h.config.Tools {
		if t = t.WithDefaults(key); catalog.IsReserved(t.Server) {
			h.entryKeys[policy.ID{Server: t.Server, Remote: t.RemoteName}] = key
		}
	}
}

// identifyFlow returns the identity of a workflow that is a tool: of its entry or of the program that provides it. A
// workflow of a tool table is identified by its digest.
func (h *Host) identifyFlow(key, name string) (server, target string) {
	server = string(config.LayerProgram) + ":" + catalog.WorkflowServer
	f := h.flows.tools[name]
	if f == nil {
		return server, ""
	}
	if !f.Foreign && key != "" {
		server = h.config.ToolID(key)
	}
	_, digest, err := f.Zip()
	if err != nil {
		return server, "" // the call reports the error
	}
	if f.Foreign {
		server = config.TargetID(digest)
	}
	return server, digest
}

// serverFacts returns the facts about a tool's server that conditions can use. For a request this is the host of its
// address.
func (h *Host) serverFacts(server, remote string) policy.Server {
	if entry, ok := h.entry(server); ok {
		return entryFacts(entry.URL, entry.Command, entry.Args)
	}
	_, entry := h.kindEntry(server, remote)
	return entryFacts(entry.Request.URL, "", nil)
}

// serverFactsIn is serverFacts for a tool that a run calls.
func (h *Host) serverFactsIn(ctx context.Context, run, server, remote string) (policy.Server, error) {
	if !h.kinds[server].requests {
		return h.serverFacts(server, remote), nil
	}
	digest, err := h.flows.Digest(ctx, run)
	if err != nil {
		return policy.Server{}, err
	}
	p, err := h.flows.Stored(ctx, digest)
	if err != nil || p.Requests == nil {
		return policy.Server{}, err
	}
	return entryFacts(p.Requests.Address(remote), "", nil), nil
}

// entryFacts returns the host of an address. The end of the address may be a template; scheme, host and port are fixed.
func entryFacts(address, command string, args []string) policy.Server {
	if address == "" {
		return policy.Server{Command: command, Args: args}
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "/?#"); ok && i >= 0 {
		address = scheme + "://" + rest[:i]
	}
	u, err := url.Parse(address)
	if err != nil {
		return policy.Server{}
	}
	return policy.Server{Host: config.CanonicalHost(u)}
}
