package host

import (
	"cmp"
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
)

// promptTool is a tool of kind prompt: a model answers a template. A call is a separate run, as for a call of an agent.
// The caller pays its cost, and a crash loses nothing.
type promptTool struct {
	text  *policy.Template
	model string
}

func openPrompts(templates *policy.Templates, entries map[string]catalog.Tool) (map[string]promptTool, error) {
	tools := map[string]promptTool{}
	for name, e := range entries {
		text, err := templates.Compile(e.Template, false)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "tools.%s.template: %w", name, err)
		}
		tools[e.RemoteName] = promptTool{text, e.Model}
	}
	return tools, nil
}

// promptChild is the [childSpec] of a prompt.
func (h *Host) promptChild(ctx context.Context, caller tenon.Run, c *agent.ChildCommand, _ *engine.Spec) (agent.Spec,
	*catalog.Snapshot, error) {
	tool, ok := h.asked[c.Agent]
	if !ok {
		return agent.Spec{}, nil, tenon.Errorf(tenon.CodeConfig, "there is no tool '%s' of kind prompt in the "+
			"configuration any more", c.Agent)
	}
	text, err := tool.text.Render(c.Arguments, policy.EscapeNone, nil)
	if err != nil {
		return agent.Spec{}, nil, tenon.Errorf(tenon.CodeInvalid, "the prompt cannot be written: %w", err)
	}
	a := agent.Config{Model: cmp.Or(tool.model, caller.Model), Mode: agent.ModeNative,
		Tools: agent.Tools{Enabled: new(false)}, Limits: h.config.Limits}.WithDefaults()
	spec, _, _, err := h.agentSpec(ctx, c.Name, a, Question{Text: text, Grant: c.Grant})
	return spec, nil, err
}

// openBuiltin makes the tools that only the configuration describes.
func (h *Host) openBuiltin() error {
	requests, prompts := h.entriesOfKind(tenon.KindHTTP), h.entriesOfKind(tenon.KindPrompt)
	if len(requests)+len(prompts) == 0 {
		return nil
	}
	templates, err := policy.NewTemplates()
	if err != nil {
		return err
	}
	if len(requests) > 0 {
		if h.requests, err = h.openHTTPTools(templates, requests); err != nil {
			return err
		}
		h.toolsets[catalog.HTTPServer] = h.wrapped(catalog.HTTPServer, h.requests)
	}
	if len(prompts) > 0 {
		if h.asked, err = openPrompts(templates, prompts); err != nil {
			return err
		}
		h.addTools(catalog.PromptServer, nil)
	}
	return nil
}
