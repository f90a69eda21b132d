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

// Seen is something of an endpoint, and what the rules say about it for a principal.
type Seen struct {
	Kind   string `json:"kind"` // tool, prompt, resource or template
	Name   string `json:"name"` // as clients name it; the URI of a resource
	Server string `json:"server"`
	Listed bool   `json:"listed"` // clients of the principal see it
	// Verdict is about a call whose arguments are not known: a rule that depends on them asks.
	Verdict tenon.Verdict `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
	Layer   string        `json:"layer,omitempty"` // whose verdict wins; empty: the built-in default
}

// Explain returns what a client of a principal sees at an endpoint ("" has all tools) and may call, denied things
// included. It calls nothing. Errors: not_found.
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
