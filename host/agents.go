package host

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/policy"
)

// handoffPrefix begins the remote names of handoffs.
const handoffPrefix = "transfer_to_"

// isHandoffOf reports whether an agent may make a handoff.
func isHandoffOf(a agent.Config, t *tenon.Tool) bool {
	to, ok := strings.CutPrefix(t.Remote, handoffPrefix)
	return ok && slices.Contains(a.Handoffs, to)
}

// openAgents adds the agents that the configuration offers to other agents. The server `agents` has the agents that
// answer a question; the server `handoffs` has the agents that take over the conversation.
func (h *Host) openAgents() {
	tool := func(remote, description, argument, about string, required ...string) tenon.Tool {
		schema := map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{argument: map[string]any{"type": "string", "description": about}}}
		if len(required) > 0 {
			schema["required"] = required
		}
		return tenon.Tool{Remote: remote, Kind: tenon.KindAgent, Description: description, Input: encode(schema),
			// The rules decide about each call of the other agent, so calling it changes nothing by itself.
			Annotations: tenon.Annotations{ReadOnly: new(true), Destructive: new(false)}}
	}
	asked, handed := map[string]tenon.Tool{}, map[string]tenon.Tool{}
	for _, t := range h.entriesOfKind(tenon.KindAgent) {
		asked[t.RemoteName] = tool(t.RemoteName, h.config.Agents[t.RemoteName].Description, "message",
			"The task, with everything that the agent needs to know: it does not see this conversation.", "message")
	}
	for _, a := range h.config.Agents {
		for _, to := range a.Handoffs {
			handed[to] = tool(handoffPrefix+to,
				strings.TrimSpace("Hand the conversation over to "+
					"the agent "+to+", who answers from then on. "+h.config.Agents[to].Description),
				"reason", "Why, in a few words.")
		}
	}
	for server, tools := range map[string]map[string]tenon.Tool{catalog.AgentServer: asked,
		catalog.HandoffServer: handed} {
		if len(tools) > 0 {
			h.addTools(server, slices.SortedFunc(maps.Values(tools),
				func(a, b tenon.Tool) int { return strings.Compare(a.Remote, b.Remote) }))
		}
	}
}

// visible filters a snapshot to the tools that an agent sees in any of its states: those its globs and groups select,
// and the handoffs that it may make. It never contains the agent itself.
func (h *Host) visible(s *catalog.Snapshot, name string, a agent.Config) *catalog.Snapshot {
	scope := h.config.Scope("agents." + name)
	known := h.knownNames(scope != nil || len(a.Tools.Floors) > 0)
	include := a.Tools.Include
	beyond := func(t *tenon.Tool, f agent.Tools) bool {
		return !f.IsEnabled() || known.excludes(f.Exclude, t) || len(f.Include) > 0 &&
			h.kinds[t.Server].always == nil && !known.includes(f.Include, t)
	}
	return s.Only(func(t *tenon.Tool) bool {
		k := h.kinds[t.Server]
		switch {
		case slices.ContainsFunc(a.Tools.Floors, func(f agent.Tools) bool { return beyond(t, f) }):
			return false
		case catalog.Excludes(a.Tools.Exclude, t), scope != nil && known.excludes(a.Tools.Exclude, t):
			return false
		case k.always != nil:
			return k.always(a, t)
		case !catalog.InGroups(t, a.Groups), k.agents && t.Remote == name:
			return false
		case scope != nil:
			return h.inScope(scope, known, t, a)
		}
		return len(include) == 0 || catalog.Includes(include, t)
	})
}

// knownNames holds the names by which trusted layers know tools that other layers renamed.
type knownNames struct {
	h     *Host
	names map[policy.ID][]string
}

func (h *Host) knownNames(needed bool) knownNames {
	k := knownNames{h: h}
	if needed {
		k.names = h.config.TrustedNames()
	}
	return k
}

// under returns copies of a tool under the names that trusted layers use, if there are any.
func (k knownNames) under(t *tenon.Tool) []*tenon.Tool {
	var list []*tenon.Tool
	for _, name := range k.names[k.h.identify(t.Server, t.Remote).ID] {
		as := *t
		as.Name, as.Rules.Wanted = name, ""
		list = append(list, &as)
	}
	return list
}

// excludes reports whether globs exclude a tool under any of its names.
func (k knownNames) excludes(globs []string, t *tenon.Tool) bool {
	return catalog.Excludes(globs, t) || slices.ContainsFunc(k.under(t),
		func(as *tenon.Tool) bool { return catalog.Excludes(globs, as) })
}

// includes reports whether globs include a tool. A name that a less trusted layer chose does
// not count.
func (k knownNames) includes(globs []string, t *tenon.Tool) bool {
	if as := k.under(t); len(as) > 0 {
		return slices.ContainsFunc(as, func(as *tenon.Tool) bool { return catalog.Includes(globs, as) })
	}
	return catalog.Includes(globs, t)
}

// inScope reports whether an agent of a trusted layer may see a tool. Less trusted layers put
// no tool into its groups, and their servers match no glob of its include but "*".
func (h *Host) inScope(scope *config.Scope, known knownNames, t *tenon.Tool, a agent.Config) bool {
	id := h.identify(t.Server, t.Remote)
	seen := *t
	seen.Rules.Groups = scope.Groups(id.ID)
	include := a.Tools.Include
	switch {
	case !catalog.InGroups(&seen, a.Groups):
		return false
	case len(include) == 0:
		return true
	case !scope.HasServer(t.Server, id.Server):
		return slices.Contains(include, "*")
	}
	return known.includes(include, t)
}

// message returns the question that one agent asks another.
func message(args json.RawMessage) string {
	var m struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(args, &m) // the catalog has checked them against the schema
	return m.Message
}
