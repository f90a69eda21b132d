package host

import (
	"cmp"
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// promptTools is the toolset of the tools of kind prompt: a template that a model
// answers. In an agent's run a call is a run of its own, as that of another agent
// is, so that its cost is the caller's and a crash loses nothing.
type promptTools struct {
	h     *Host
	tools map[string]promptTool
}

type promptTool struct {
	text  *policy.Template
	model string
}

func (h *Host) openPromptTools(templates *policy.Templates, entries map[string]catalog.Tool) (*promptTools, error) {
	t := &promptTools{h: h, tools: map[string]promptTool{}}
	for name, e := range entries {
		text, err := templates.Compile(e.Template, false)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "tools.%s.template: %w", name, err)
		}
		t.tools[e.WithDefaults(name).RemoteName] = promptTool{text, e.Model}
	}
	return t, nil
}

// Tools implements [tenon.Toolset].
func (*promptTools) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

// Call implements [tenon.Toolset]: one request to the model, for a call that a
// person makes.
func (t *promptTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	tool, ok := t.tools[c.Tool]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s' of kind prompt in the configuration any more", c.Tool)
	}
	text, err := tool.text.Render(c.Arguments, policy.EscapeNone, nil)
	if err != nil {
		return tenon.ErrorResult("the prompt cannot be written: " + err.Error()), nil
	}
	a, err := t.h.config.Agent("")
	if err != nil {
		a = agent.Config{}
	}
	name, err := t.h.models.choose(ctx, "", cmp.Or(tool.model, a.Model))
	if err != nil {
		return nil, err
	}
	m, err := t.h.models.get(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := t.h.generate(ctx, m, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage(text)}}, "", "", func(tenon.Event) {})
	if err != nil {
		return nil, err
	}
	if r.Stop != tenon.StopEnd {
		return tenon.ErrorResult("the model ended its answer with '" + string(r.Stop) + "': " + r.Message.Text()), nil
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(r.Message.Text())}}, nil
}

// promptSpec is what the run of a prompt begins with.
func (h *Host) promptSpec(ctx context.Context, caller tenon.Run, c *agent.ChildCommand) (agent.Spec, error) {
	if h.asked == nil {
		return agent.Spec{}, tenon.Errorf(tenon.CodeConfig, "there is no tool of kind prompt in the configuration any more")
	}
	tool, ok := h.asked.tools[c.Agent]
	if !ok {
		return agent.Spec{}, tenon.Errorf(tenon.CodeConfig, "there is no tool '%s' of kind prompt in the configuration any more", c.Agent)
	}
	text, err := tool.text.Render(c.Arguments, policy.EscapeNone, nil)
	if err != nil {
		return agent.Spec{}, tenon.Errorf(tenon.CodeInvalid, "the prompt cannot be written: %w", err)
	}
	no := false
	a := agent.Config{Model: cmp.Or(tool.model, caller.Model), Mode: agent.ModeNative, Tools: agent.Tools{Enabled: &no}, Limits: h.config.Limits}.WithDefaults()
	spec, _, _, err := h.agentSpec(ctx, c.Name, a, Question{Text: text, Grant: c.Grant})
	return spec, err
}

// openBuiltin makes the tools that the configuration alone describes.
func (h *Host) openBuiltin() error {
	of := map[string]map[string]catalog.Tool{}
	for name, t := range h.config.Tools {
		if t.Kind == tenon.KindHTTP || t.Kind == tenon.KindPrompt {
			if of[t.Kind] == nil {
				of[t.Kind] = map[string]catalog.Tool{}
			}
			of[t.Kind][name] = t
		}
	}
	if len(of) == 0 {
		return nil
	}
	templates, err := policy.NewTemplates()
	if err != nil {
		return err
	}
	if entries := of[tenon.KindHTTP]; len(entries) > 0 {
		t, err := h.openHTTPTools(templates, entries)
		if err != nil {
			return err
		}
		h.requests, h.toolsets[catalog.HTTPServer] = t, h.wrapped(catalog.HTTPServer, t)
	}
	if entries := of[tenon.KindPrompt]; len(entries) > 0 {
		t, err := h.openPromptTools(templates, entries)
		if err != nil {
			return err
		}
		h.asked, h.toolsets[catalog.PromptServer] = t, t
	}
	return nil
}

// hasHTTPTools reports whether a tool of the configuration is of kind http.
func (h *Host) hasHTTPTools() bool {
	for _, t := range h.config.Tools {
		if t.Kind == tenon.KindHTTP {
			return true
		}
	}
	return false
}

var _ tenon.Toolset = (*promptTools)(nil)
