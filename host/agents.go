package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// Other agents are offered as the tools of two servers that no configuration can
// name.
const (
	handoffServer = catalog.HandoffServer
	handoffPrefix = "transfer_to_"
)

// kindOf says what a call of a tool comes to: the one place that decides by a tool's
// kind. A tool of any other kind is called by its toolset.
func kindOf(t *tenon.Tool) string {
	if t.Server == handoffServer {
		return agent.KindHandoff
	}
	if t.Server == finderServer {
		return agent.KindSearch
	}
	if t.Server == dataServer {
		return agent.KindQuery
	}
	if !slices.Contains([]string{catalog.AgentServer, catalog.PromptServer, catalog.WorkflowServer}, t.Server) {
		return "" // whatever a toolset of somebody's own says of its kind
	}
	switch t.Kind {
	case tenon.KindAgent, tenon.KindPrompt:
		return agent.KindAgent
	case tenon.KindWorkflow:
		return agent.KindWorkflow
	}
	return ""
}

// agentTools offers other agents. The core has them called in runs of their own, so
// that nobody calls them here.
type agentTools []tenon.Tool

// Tools implements [tenon.Toolset].
func (a agentTools) Tools(context.Context) ([]tenon.Tool, error) { return a, nil }

// Call implements [tenon.Toolset].
func (a agentTools) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return nil, tenon.Errorf(tenon.CodeInternal, "agent '%s' was called as if it were a tool of a server", c.Tool)
}

// openAgents adds tenon's own tools: the reader of large results, the query of tables,
// the finder of tools, and the agents that the configuration offers to others. Under
// `tools` stand those that are asked and answer, under `handoffs` of an agent those that
// take over.
func (h *Host) openAgents() {
	yes, no := true, false
	tool := func(remote, description, argument, about string, required ...string) tenon.Tool {
		schema := map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{argument: map[string]any{"type": "string", "description": about}}}
		if len(required) > 0 {
			schema["required"] = required
		}
		return tenon.Tool{Remote: remote, Kind: tenon.KindAgent, Description: description, Input: encode(schema),
			// What such an agent does is asked about call by call.
			Annotations: tenon.Annotations{ReadOnly: &yes, Destructive: &no}}
	}
	h.toolsets[artifactServer], h.toolsets[dataServer], h.toolsets[finderServer] = newArtifactTools(h), newDataTools(), newFinder()
	asked, handed := map[string]tenon.Tool{}, map[string]tenon.Tool{}
	for name, t := range h.config.Tools {
		if t = t.WithDefaults(name); t.Kind == tenon.KindAgent {
			asked[t.RemoteName] = tool(t.RemoteName, h.config.Agents[t.RemoteName].Description, "message",
				"What the agent is to do, with all that it has to know: it sees nothing of this conversation.", "message")
		}
	}
	for _, a := range h.config.Agents {
		for _, to := range a.Handoffs {
			handed[to] = tool(handoffPrefix+to, strings.TrimSpace("Hand the conversation over to the agent "+to+", who answers from then on. "+h.config.Agents[to].Description),
				"reason", "Why, in a few words.")
		}
	}
	for server, tools := range map[string]map[string]tenon.Tool{catalog.AgentServer: asked, handoffServer: handed} {
		if len(tools) > 0 {
			h.toolsets[server] = agentTools(slices.SortedFunc(maps.Values(tools), func(a, b tenon.Tool) int { return strings.Compare(a.Remote, b.Remote) }))
		}
	}
}

// visible leaves in a snapshot what an agent sees in one state or another: what its
// globs and its groups say, the handoffs that it may make and no others, and never
// itself.
func visible(s *catalog.Snapshot, name string, a agent.Config) *catalog.Snapshot {
	include := a.Tools.Include
	return s.Only(func(t *tenon.Tool) bool {
		to, handoff := strings.CutPrefix(t.Remote, handoffPrefix)
		switch {
		case catalog.Match(a.Tools.Exclude, t.Name):
			return false
		case isOwn(t.Server):
			return true
		case t.Server == handoffServer:
			return handoff && slices.Contains(a.Handoffs, to)
		case !catalog.InGroups(t, a.Groups), t.Server == catalog.AgentServer && t.Remote == name:
			return false
		}
		return len(include) == 0 || catalog.Match(include, t.Name)
	})
}

// message is what an agent is asked by another one.
func message(args json.RawMessage) string {
	var m struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(args, &m) // the catalog has held them to the schema
	return m.Message
}
