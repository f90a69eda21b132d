package gateway

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// The values of tool.kind in rules for things that a server offers besides tools.
const (
	kindResource = "mcp_resource"
	kindPrompt   = "mcp_prompt"
)

// resourceTool describes a resource or a template to the rules as a read-only tool whose name is the URI.
func resourceTool(server, uri string) *tenon.Tool {
	return &tenon.Tool{Server: server, Remote: uri, Name: uri, Kind: kindResource,
		Annotations: tenon.Annotations{ReadOnly: new(true), Idempotent: new(true)}}
}

// promptTool describes a prompt for the rules.
func promptTool(server, name string) *tenon.Tool {
	t := resourceTool(server, name)
	t.Kind = kindPrompt
	return t
}

// uriArguments returns the arguments that rules see when a resource is read.
func uriArguments(uri string) json.RawMessage { return tenon.EventData(map[string]string{"uri": uri}) }

// denies reports whether the rules deny a resource or a prompt to the principal. If args is nil, the arguments are
// unknown.
func (d *door) denies(h *host.Host, t *tenon.Tool, args json.RawMessage) (reason string, denied bool) {
	o := h.Approvals().Rules().JudgeTool(t, d.key.who, args)
	return cmp.Or(o.Reason, "the rules deny it"), o.Verdict == tenon.Deny
}

// allow returns an error of code denied unless the rules allow the principal to read a resource or to get a prompt. A
// rule that asks also leads to this error, because only tool calls can wait for a person.
func (d *door) allow(h *host.Host, t *tenon.Tool, args json.RawMessage) error {
	o := h.Approvals().Rules().JudgeTool(t, d.key.who, args)
	switch o.Verdict {
	case tenon.Deny:
		return tenon.Errorf(tenon.CodeDenied, "'%s' is denied: %s", tenon.Visible(t.Name),
			cmp.Or(o.Reason, "the rules deny it"))
	case tenon.Ask:
		return tenon.Errorf(tenon.CodeDenied, "'%s' needs approval, and only calls of tools can wait for one: %s; "+
			"have a rule allow it (tool.kind == \"%s\")", tenon.Visible(t.Name),
			cmp.Or(o.Reason, "the rules ask"), t.Kind)
	}
	return nil
}

// filter removes the offers that the rules deny to the principal.
func (o *offered) filter(d *door, h *host.Host) {
	for server, of := range o.of {
		of.prompts = slices.DeleteFunc(slices.Clone(of.prompts), func(p mcp.Prompt) bool {
			_, denied := d.denies(h, promptTool(server, p.Name), nil)
			return denied
		})
		of.resources = slices.DeleteFunc(slices.Clone(of.resources), func(r mcp.Resource) bool {
			args := uriArguments(r.URI)
			if r.Template != "" {
				args = nil
			}
			_, denied := d.denies(h, resourceTool(server, cmp.Or(r.Template, r.URI)), args)
			return denied
		})
	}
}
