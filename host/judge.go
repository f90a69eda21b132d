package host

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// Proposal is a call that the rules are asked about.
type Proposal struct {
	Tool      string // exposed name
	Arguments json.RawMessage
	Agent     string
	State     string          // of the agent
	Principal tenon.Principal // empty: the local user
}

// Judge says what the rules decide about a call, as they would in a run that nobody
// has granted anything. Nothing is called. Errors: not_found, invalid (the arguments
// do not fit the tool).
func (h *Host) Judge(ctx context.Context, p Proposal) (policy.Opinion, error) {
	snapshot, _, err := h.Tools(ctx)
	if err != nil {
		return policy.Opinion{}, err
	}
	c, err := snapshot.Prepare(&tenon.ToolCall{Name: p.Tool, Arguments: p.Arguments})
	if err != nil {
		return policy.Opinion{}, err
	}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	run := tenon.Run{Agent: p.Agent, Principal: cmp.Or(p.Principal, tenon.PrincipalLocal)}
	return h.law().rules.Judge(h.facts(run, p.State, c.Tool, c.Arguments)), nil
}

// law is the rules as they are at a moment. They change where a server comes or goes
// that the configuration does not name; a call is judged by one of them.
type law struct {
	rules  *policy.Rules
	digest string
}

func (h *Host) law() *law { return h.laws.Load() }

func (h *Host) enact(r *policy.Rules) { h.laws.Store(&law{r, r.Digest()}) }

// Policy identifies the rules: the same rules have the same digest.
func (h *Host) Policy() string { return h.law().digest }

// Unused says which rule of a tool is not used, and why; "" where all are.
func (h *Host) Unused(t *tenon.Tool, agent string) string {
	b := h.law().rules.For(policy.ID{Server: t.Server, Remote: t.Remote}, agent)
	if policy.Value(b.Cache.TTL) > 0 && !policy.Value(b.Cache.Force) && !t.Annotations.IsIdempotent() {
		return "cache is not used: the tool is marked neither read-only nor idempotent; cache.force keeps its results all the same"
	}
	return ""
}

// inert says which rules are about tools that there are not. The snapshot is to hold
// the tools of all servers.
func (h *Host) inert(s *catalog.Snapshot) []error {
	var list []error
	for _, m := range h.law().rules.Mentions() {
		known := m.Value == readerTool
		for _, t := range s.Tools() {
			known = known || m.Of == "tool.name" && t.Name == m.Value || m.Of == "tool.remote_name" && t.Remote == m.Value
		}
		for _, w := range s.Withheld() {
			known = known || w.Remote == m.Value
		}
		if !known {
			list = append(list, tenon.Errorf(tenon.CodeConfig, "%s: is about nothing: no server has a tool '%s'", m.Path, m.Value))
		}
	}
	return list
}

// placed puts the place in the file before a message that begins with the path of
// what is wrong.
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
