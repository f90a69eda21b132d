package host

import (
	"cmp"
	"context"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model/react"
)

// prompts keeps the prompts of the text loop. A prompt costs a moment to read and
// keeps the texts of its tools.
type prompts struct {
	mu   sync.Mutex
	open map[agent.React]*react.Prompt
}

// maxPrompts bounds what is kept; a host sees few different ones.
const maxPrompts = 16

func (p *prompts) get(r agent.React) (*react.Prompt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.open[r]; ok {
		return known, nil
	}
	c := react.Config{Template: r.Template, Context: r.Context}
	if c.Template == "" {
		var ok bool
		if c.Template, ok = react.Builtin(r.Prompt); !ok {
			return nil, tenon.Errorf(tenon.CodeConfig, "there is no react prompt '%s': it is default, trustgraph, or a file", r.Prompt)
		}
	}
	made, err := react.New(c)
	if err != nil {
		return nil, err
	}
	if len(p.open) >= maxPrompts {
		clear(p.open)
	}
	if p.open == nil {
		p.open = map[agent.React]*react.Prompt{}
	}
	p.open[r] = made
	return made, nil
}

// reactSpec says whether a run calls its tools in a text loop: as the question
// says, else the agent, else the model. Nil: it does not.
func (h *Host) reactSpec(q Question, a agent.Config, model string) (*agent.React, error) {
	mode := cmp.Or(q.Mode, a.Mode)
	if mode == "" {
		mode = h.models.mode(model)
	}
	switch mode {
	case agent.ModeNative:
		return nil, nil
	case agent.ModeReact:
		r := &agent.React{Prompt: a.Prompt, Template: a.Template, Context: a.AdditionalContext}
		_, err := h.prompts.get(*r)
		return r, err
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "there is no mode '%s': it is native or react", mode)
}

// modelOf opens the model of a prompt, with the text loop around it where the run
// has one.
func (h *Host) modelOf(ctx context.Context, p *agent.Prompt) (opened, error) {
	m, err := h.models.get(ctx, p.Model)
	if err != nil || p.React == nil {
		return m, err
	}
	prompt, err := h.prompts.get(*p.React)
	if err != nil {
		return opened{}, err
	}
	m.Model = react.Wrap(m.Model, prompt)
	return m, nil
}

// Prompt returns the first request that a question would lead to, as the model
// would get it, and asks nothing. A question without text is possible, and no model
// is needed. Errors: those of [Host.Start].
func (h *Host) Prompt(ctx context.Context, q Question) (*tenon.Request, []Problem, error) {
	var parent *agent.State
	if q.Session != "" {
		s, err := h.Session(ctx, q.Session)
		if err != nil {
			return nil, nil, err
		}
		if s.Head != "" {
			last, err := h.store.Run(ctx, s.Head)
			if err != nil {
				return nil, nil, err
			}
			seq := cmp.Or(s.HeadSeq, last.Seq)
			if q.Agent == "" {
				q.Agent = h.talkingTo(ctx, last, seq)
			}
			if parent, err = h.fold(ctx, last.ID, seq); err != nil {
				return nil, nil, err
			}
		}
	}
	a, err := h.config.Agent(q.Agent)
	if err != nil {
		return nil, nil, err
	}
	if _, err := h.models.choose(ctx, q.Model, a.Model); err != nil && q.Model == "" { // there is none, or no key: it is not asked
		if q.Mode == "" && a.Mode == "" {
			q.Mode = h.models.mode(a.Model)
		}
		q.Model = DemoModel
	}
	spec, _, problems, err := h.agentSpec(ctx, h.agentName(q.Agent), a, q)
	if err != nil {
		return nil, problems, err
	}
	p := agent.New(spec, parent).Prompt()
	req, err := h.request(ctx, p)
	if err != nil || p.React == nil {
		return req, problems, err
	}
	prompt, err := h.prompts.get(*p.React)
	if err != nil {
		return nil, problems, err
	}
	req, err = prompt.Request(req)
	return req, problems, err
}
