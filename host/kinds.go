package host

import (
	"context"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/store"
)

// kind describes the tools of one of tenon's own servers: how their calls are carried out, and what else the host does
// with these tools. A kind is also the toolset of the server. The zero value describes the tools of MCP servers, and of
// functions and toolsets of a Go program.
type kind struct {
	tools []tenon.Tool // nil: the entries of the configuration make them, if there are any
	// call carries out the calls, also of tools that the configuration does not offer any more. Nil: the host has
	// another toolset under the server's name.
	call func(ctx context.Context, s *executor.Step) ([]tenon.Event, error)
	// decision is the kind of decisions about the tools; see [agent.Decision].
	decision string
	// always reports whether an agent sees a tool, whatever its groups and includes say. Nil: they decide.
	always func(a agent.Config, t *tenon.Tool) bool
	// inUse reports whether a run has a use for the tools. Nil: the state of the agent decides.
	inUse func(v agent.View) bool

	// identify returns the identity of a tool and its target; key is its entry. Nil: the entry or the server decides.
	identify func(key, remote string) (server, target string)
	// access identifies what a call reaches. Nil: the connection of the server.
	access func(ctx context.Context, run tenon.Run, remote string) (string, error)

	helper    bool // offered only to agents that can use it, without a search
	finds     bool // finds other tools
	handoff   bool // a handoff tool, which cannot be a step of a workflow
	clients   bool // tools that the client of a run executes
	agents    bool // remote names are names of agents; an agent does not see itself
	flows     bool // workflows: a call passes tables to ports, besides its parameters
	queries   bool // reads tables of the conversation
	requests  bool // steps of workflows, which the workflow of the run identifies
	static    bool // made by entries of the configuration only
	noFiles   bool // the arguments reach no file of this machine
	unaudited bool // an audit as a workflow leaves the calls out
}

// openKinds makes the table of tenon's own servers.
func (h *Host) openKinds() {
	child := func(start startChild) func(context.Context, *executor.Step) ([]tenon.Event, error) {
		return func(ctx context.Context, s *executor.Step) ([]tenon.Event, error) { return h.doChild(ctx, s, start) }
	}
	h.kinds = map[string]kind{
		catalog.AgentServer:  {call: child(h.startAgent(h.agentChild)), decision: agent.KindAgent, agents: true},
		catalog.PromptServer: {call: child(h.startAgent(h.promptChild)), decision: agent.KindAgent, static: true},
		catalog.WorkflowServer: {call: child(h.startWorkflowChild), decision: agent.KindWorkflow, flows: true,
			identify: h.identifyFlow},
		catalog.HandoffServer: {call: h.doHandoff, decision: agent.KindHandoff, handoff: true, noFiles: true,
			unaudited: true, always: isHandoffOf,
			identify: func(_, remote string) (string, string) {
				return string(h.config.Layer("agents."+strings.TrimPrefix(remote, handoffPrefix))) + ":" +
					catalog.HandoffServer, ""
			}},
		catalog.HTTPServer: {static: true, noFiles: true,
			access: func(_ context.Context, _ tenon.Run, remote string) (string, error) {
				if h.requests == nil {
					return "", nil
				}
				return store.Digest(encode(h.requests.tools[remote].Request)), nil
			}},
		catalog.StepServer: {call: h.doRequest, requests: true,
			access: func(ctx context.Context, run tenon.Run, _ string) (string, error) {
				spec, err := h.flows.Spec(ctx, run.ID)
				return spec.Workflow, err
			}},
		catalog.ClientServer: {call: h.doClient, decision: agent.KindClient, clients: true, noFiles: true,
			always:   func(agent.Config, *tenon.Tool) bool { return true },
			identify: func(string, string) (string, string) { return builtin + catalog.ClientServer, "" }},
		catalog.ProviderServer: {call: executor.Plain(connectors{}).Call, noFiles: true},
		catalog.ArtifactServer: {tools: readerTools, call: executor.Plain(artifactTools{h}).Call, helper: true,
			unaudited: true, inUse: func(v agent.View) bool { return v.Artifacts }},
		catalog.DataServer: {tools: queryTools, call: h.doQuery, decision: agent.KindQuery, helper: true, queries: true,
			inUse: func(v agent.View) bool { return v.Data > 0 }},
		catalog.FinderServer: {tools: finderTools, call: h.doFind, decision: agent.KindSearch, helper: true,
			finds: true, unaudited: true},
	}
	for server, k := range h.kinds {
		if k.helper {
			k.always = func(agent.Config, *tenon.Tool) bool { return true }
			k.identify = func(string, string) (string, string) { return builtin + server, "" }
			h.kinds[server], h.toolsets[server] = k, k
		}
	}
}

// kindOf returns the kind of decisions about a tool, and the kind of the tool in their records. A handoff is recorded
// without one.
func (h *Host) kindOf(t *tenon.Tool) (decision, tool string) {
	k := h.kinds[t.Server]
	if k.handoff {
		return k.decision, ""
	}
	return k.decision, t.Kind
}

// Tools implements [executor.Toolset].
func (k kind) Tools(context.Context) ([]tenon.Tool, error) { return k.tools, nil }

// Call implements [executor.Toolset].
func (k kind) Call(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	return k.call(ctx, s)
}

// addTools has the host offer tools of one of tenon's own servers.
func (h *Host) addTools(server string, tools []tenon.Tool) {
	k := h.kinds[server]
	k.tools = tools
	h.toolsets[server] = k
}

// isHelper reports whether a server is tenon's own and its tools are offered only to agents that have a use for them.
func (h *Host) isHelper(server string) bool { return h.kinds[server].helper }

// entriesOfKind returns the entries of tools of a kind, by name, with defaults.
func (h *Host) entriesOfKind(kind string) map[string]catalog.Tool {
	list := map[string]catalog.Tool{}
	for name, t := range h.config.Tools {
		if t.Kind == kind {
			list[name] = t.WithDefaults(name)
		}
	}
	return list
}

var _ executor.Toolset = kind{}
