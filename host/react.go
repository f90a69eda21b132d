package host

import (
	"cmp"
	"context"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/model/react"
)

// prompts caches the prompts of the text loop. Reading a prompt takes a moment; a prompt keeps the texts of its tools.
type prompts struct {
	mu   sync.Mutex
	open map[agent.React]*react.Prompt
}

// maxPrompts bounds the cache. A host uses few different prompts.
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
			return nil, tenon.Errorf(tenon.CodeConfig, "there is no react prompt '%s': it is default, trustgraph, "+
				"or a file", r.Prompt)
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

// reactSpec returns the text loop of a run, or nil if the model calls tools natively. The question decides, then the
// agent, then the model.
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

// modelOf opens the model of a prompt and, if the run has one, puts the text loop around it.
func (h *Host) modelOf(ctx context.Context, p *agent.Prompt) (executor.Model, error) {
	m, err := h.models.forAgent(ctx, p.Model, p.Agent)
	if err != nil || p.React == nil {
		return m, err
	}
	prompt, err := h.prompts.get(*p.React)
	if err != nil {
		return executor.Model{}, err
	}
	m.Model = react.Wrap(m.Model, prompt)
	return m, nil
}

func (h modelsHandle) Prompt(ctx context.Context, q Question) (*tenon.Request, []Problem, error) {
	var parent *agent.State
	var err error
	if q.tools, err = h.host.questionTools(q); err != nil {
		return nil, nil, err
	}
	q.tables = sourcesOf(q.Data, q.DataFiles)
	if q.Session != "" {
		s, err := h.host.Sessions().Get(ctx, q.Session)
		if err != nil {
			return nil, nil, err
		}
		if s.Head != "" {
			last, err := h.host.store.Run(ctx, s.Head)
			if err != nil {
				return nil, nil, err
			}
			seq := cmp.Or(s.HeadSeq, last.Seq)
			if q.Agent == "" {
				q.Agent = h.host.talkingTo(ctx, last, seq)
			}
			if parent, err = h.host.fold(ctx, last.ID, seq); err != nil {
				return nil, nil, err
			}
		}
	}
	a, err := h.host.config.Agent(q.Agent)
	if err != nil {
		return nil, nil, err
	}
	// Without a model or a key the model is not asked.
	if _, err := h.host.models.choose(ctx, q.Model, a.Model); err != nil && q.Model == "" {
		if q.Mode == "" && a.Mode == "" {
			q.Mode = h.host.models.mode(a.Model)
		}
		q.Model = DemoModel
	}
	name := h.host.agentName(q.Agent)
	if parent == nil {
		var done func()
		if q.tables, done, err = h.host.dataInputs(a, q.tables); err != nil {
			return nil, nil, tenon.Errorf(tenon.ErrorCode(err), "agents.%s.%w", name, err)
		}
		defer done()
		q.own = len(a.DataInputs)
	}
	spec, snapshot, problems, err := h.host.agentSpec(ctx, name, a, q)
	if err != nil {
		return nil, problems, err
	}
	if err := h.host.giveData(ctx, q, a, snapshot, &spec, &engine.Spec{}); err != nil {
		return nil, problems, err
	}
	p := agent.New(spec, parent).Prompt()
	req, err := h.host.request(ctx, p)
	if err != nil || p.React == nil {
		return req, problems, err
	}
	prompt, err := h.host.prompts.get(*p.React)
	if err != nil {
		return nil, problems, err
	}
	req, err = prompt.Request(req)
	return req, problems, err
}
