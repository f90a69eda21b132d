package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// Seen describes a tool, prompt, resource or template of an endpoint, and the verdict of the rules for a principal.
type Seen struct {
	Kind   string `json:"kind"` // tool, prompt, resource or template
	Name   string `json:"name"` // exposed name; for a resource its URI
	Server string `json:"server"`
	Listed bool   `json:"listed"` // clients of the principal see it
	// Verdict is the verdict on a call with unknown arguments. If a rule depends on the arguments, it is ask.
	Verdict tenon.Verdict `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
	Layer   string        `json:"layer,omitempty"` // the layer with the winning rule; empty for the built-in default
}

// Explain returns everything that an endpoint offers, and what a client of a principal may see and call of it,
// including denied entries. The endpoint "" has all tools. Explain calls nothing. Errors: not_found.
func Explain(ctx context.Context, h *host.Host, endpoint string, who tenon.Principal) ([]Seen, error) {
	g := New(h, Config{})
	d := &door{g: g, key: doorKey{cmp.Or(who, tenon.PrincipalLocal), endpoint}}
	about, err := endpointOf(h, endpoint)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := h.Tools().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	list := []Seen{}
	add := func(kind string, t *tenon.Tool, args json.RawMessage) {
		o := h.Approvals().Rules().JudgeTool(t, d.key.who, args)
		if what, _, ok := strings.Cut(o.Reason, " cannot be decided: "); ok && args == nil {
			o.Reason = what + " depends on the arguments"
		}
		list = append(list, Seen{kind, t.Name, t.Server, o.Verdict != tenon.Deny, o.Verdict, o.Reason, o.Layer})
	}
	for _, t := range snapshot.Tools() {
		if about.Has(t) {
			add("tool", t, nil)
		}
	}
	prompts, err := d.ask(ctx, h, true)
	if err != nil {
		return nil, err
	}
	prompts.promptNames(func(name, server string, p mcp.Prompt) bool {
		t := promptTool(server, p.Name)
		t.Name = name
		add("prompt", t, nil)
		return true
	})
	resources, err := d.ask(ctx, h, false)
	if err != nil {
		return nil, err
	}
	for _, server := range resources.names {
		for _, r := range resources.of[server].resources {
			if r.Template != "" {
				add("template", resourceTool(server, r.Template), nil)
			} else {
				add("resource", resourceTool(server, r.URI), uriArguments(r.URI))
			}
		}
	}
	return list, nil
}
