package host

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
)

// Proposal is a call that the rules evaluate without a run.
type Proposal struct {
	Tool      string // exposed name
	Arguments json.RawMessage
	Agent     string
	State     string          // of the agent
	Principal tenon.Principal // empty: the local user
}

func (h rulesHandle) Judge(ctx context.Context, p Proposal) (policy.Opinion, error) {
	snapshot, _, err := h.host.Tools().Snapshot(ctx)
	if err != nil {
		return policy.Opinion{}, err
	}
	c, err := snapshot.Prepare(&tenon.ToolCall{Name: p.Tool, Arguments: p.Arguments}, h.host.ruleset().Layers.Reads())
	if err != nil {
		return policy.Opinion{}, err
	}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	run := tenon.Run{Agent: p.Agent, Principal: cmp.Or(p.Principal, tenon.PrincipalLocal)}
	f, err := h.host.facts(ctx, run, p.State, c.Tool, c.Arguments)
	if err != nil {
		return policy.Opinion{}, err
	}
	rules := h.host.ruleset().Layers
	o := rules.Judge(f)
	o.Verdicts = rules.Verdicts(f)
	return o, nil
}

func (h rulesHandle) Verdicts(t *tenon.Tool, agent string) []policy.LayerVerdict {
	id := h.host.identify(t.Server, t.Remote)
	return h.host.ruleset().Layers.Verdicts(&policy.Facts{Tool: t, Identity: id.Server,
		Server: h.host.serverFacts(t.Server,
			t.Remote),
		Arguments: json.RawMessage("{}"), Agent: agent, Principal: string(tenon.PrincipalLocal)})
}

// unknownArguments are no JSON object, so that a condition that needs an argument cannot be evaluated and asks.
var unknownArguments = json.RawMessage("[]")

func (h rulesHandle) Forbids(t *tenon.Tool, agent string, who tenon.Principal) (reason string, forbidden bool) {
	o := h.judge(t, agent, who, unknownArguments)
	return o.Reason, o.Verdict == tenon.Deny
}

func (h rulesHandle) JudgeTool(t *tenon.Tool, who tenon.Principal, args json.RawMessage) policy.Opinion {
	if args == nil {
		args = unknownArguments
	}
	return h.judge(t, "", who, args)
}

func (h rulesHandle) judge(t *tenon.Tool, agent string, who tenon.Principal, args json.RawMessage) policy.Opinion {
	id := h.host.identify(t.Server, t.Remote)
	return h.host.ruleset().Layers.Judge(&policy.Facts{Tool: t, Identity: id.Server,
		Server: h.host.serverFacts(t.Server, t.Remote), Arguments: args, Agent: agent,
		Principal: string(cmp.Or(who, tenon.PrincipalLocal))})
}

// ruleset returns the current rules. They change when a server is added or removed.
func (h *Host) ruleset() *executor.Ruleset { return h.rules.Load() }

func (h *Host) setRules(r *policy.Layers) {
	h.rules.Store(&executor.Ruleset{Layers: r, Digest: r.Digest()})
}

func (h rulesHandle) ReadsPrincipal() bool { return h.host.ruleset().Layers.ReadsPrincipal() }

func (h rulesHandle) Digest() string { return h.host.ruleset().Digest }

func (h rulesHandle) Unused(t *tenon.Tool, agent string) string {
	b := h.host.ruleset().Layers.For(h.host.identify(t.Server, t.Remote).ID, agent)
	if policy.Value(b.Cache.TTL) > 0 && !policy.Value(b.Cache.Force) && !t.Annotations.IsIdempotent() {
		return "cache is not used: the tool is marked neither read-only nor idempotent; cache.force keeps its " +
			"results all the same"
	}
	return ""
}

// inert reports the rules about tools and prompts that do not exist. The snapshot must contain the tools of all
// servers.
func (h *Host) inert(ctx context.Context, s *catalog.Snapshot) []error {
	var list []error
	for _, m := range h.ruleset().Layers.Mentions() {
		known := m.Value == executor.ReaderTool || strings.Contains(m.Value, "://") // the address of a resource
		for _, t := range s.Tools() {
			known = known || m.Of != "tool.exposed" && t.Remote == m.Value || m.Of != "tool.remote_name" &&
				(t.Name == m.Value || t.Rules.Wanted == m.Value)
		}
		for _, w := range s.Withheld() {
			known = known || w.Remote == m.Value
		}
		if !known && !h.mayBePrompt(ctx, m.Value) {
			list = append(list, tenon.Errorf(tenon.CodeConfig, "%s: matches no tool: no server has a tool '%s'",
				m.Path, m.Value))
		}
	}
	return append(list, h.inertExcludes(s)...)
}

// inertExcludes reports the names in the excludes of agents that match no tool. Globs with wildcards may match later
// tools, so they are not reported.
func (h *Host) inertExcludes(s *catalog.Snapshot) []error {
	var list []error
	own := map[string]bool{}
	for server, set := range h.sets() {
		if !h.isHelper(server) {
			continue
		}
		tools, err := set.Tools(context.Background()) // these toolsets ask no server
		for _, t := range tools {
			own[t.Remote] = err == nil
		}
	}
	for _, name := range h.config.AgentNames() {
		path := "agents." + name + ".tools.exclude"
		if h.config.FromUser("agents." + name) {
			continue // the user's file serves many projects, not all of which have the tool
		}
		for i, g := range h.config.Agents[name].Tools.Exclude {
			if strings.ContainsAny(g, `*?[\`) || own[g] || s.Knows(g) {
				continue
			}
			list = append(list, tenon.Errorf(tenon.CodeConfig, "%s[%d]: '%s' matches no tool of any server; write "+
				"SERVER/REMOTE_NAME as 'tenon tools list' prints them", path, i, tenon.Visible(g)))
		}
	}
	return list
}

// placed adds the position in the file to a message that begins with the path of the defect.
func (h *Host) placed(err error) error {
	text := err.Error()
	for i, r := range text {
		if r == ' ' || r == ':' {
			if place := h.config.Place(text[:i]); place != "" {
				return tenon.Errorf(tenon.ErrorCode(err), "%s: %w", place, err)
			}
			break
		}
	}
	return err
}

// mayGrant refuses a permission for all calls if the administrator forbids it. Errors: denied.
func (h *Host) mayGrant(by string) error {
	if by == "" || !h.config.Forbids("yes") {
		return nil
	}
	return tenon.Errorf(tenon.CodeDenied, "the run cannot begin with every call allowed: %s: trust.forbid holds "+
		"yes; leave --yes out and decide each call", h.config.ForbiddenBy("yes"))
}
