package host

import (
	"context"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/workflow"
	"github.com/tenonhq/tenon/workflow/runner"
)

// flowScope returns the entries that the steps of a workflow may name, or nil for all.
func (h *Host) flowScope(f *runner.Flow) *config.Scope {
	for name, own := range h.flows.tools {
		if own == f {
			return h.config.Scope("tools." + name)
		}
	}
	return nil
}

// childInScope refuses an agent that a workflow's run calls if a less trusted layer has defined the agent since the run
// began. Errors: denied, store.
func (h *Host) childInScope(ctx context.Context, caller tenon.Run, c *agent.ChildCommand) error {
	if caller.Core != workflow.Version {
		return nil
	}
	digest, err := h.flows.Digest(ctx, caller.ID)
	if err != nil {
		return err
	}
	path := h.entryOf(digest)
	return h.stepInScope(h.config.Scope(path), strings.TrimPrefix(path, "tools."), c.Agent, c.Agent, "")
}

// stepInScope refuses a step of a workflow whose agent or server belongs to a less trusted
// layer than the workflow. An empty name is none. Errors: denied.
func (h *Host) stepInScope(scope *config.Scope, flow, step, agent, server string) error {
	if _, ok := h.config.Agents[agent]; ok && !scope.HasAgent(agent) {
		return outOfScope(flow, step, "agent", agent)
	}
	if _, ok := h.config.Servers[server]; ok && !scope.HasServer(server, "") {
		return outOfScope(flow, step, "server", server)
	}
	return nil
}

// outOfScope is the error for a step that would use an entry of a less trusted layer.
func outOfScope(flow, step, kind, name string) error {
	return tenon.Errorf(tenon.CodeDenied, "step '%s' of workflow '%s' is refused: the %s '%s' belongs to the "+
		"project, and the workflow does not; give the project's %s another name, or move the workflow to the project",
		step, flow, kind, tenon.Visible(name), kind)
}
