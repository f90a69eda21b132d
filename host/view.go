package host

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// inView returns the tools that a run can call now: its initial tools that are visible in the agent's state, whether
// the model found them or not. The reader of artifacts is included only if there are artifacts. For a call by a person,
// all is set and every tool is included.
func (h *Host) inView(ctx context.Context, v agent.View, all bool) (*catalog.Snapshot, error) {
	s, err := h.snapshot(ctx, v.Tools)
	if err != nil || all {
		return s, err
	}
	key := v.Tools + " in " + v.State + own(v)
	return h.derived(key, func() *catalog.Snapshot {
		return s.Only(func(t *tenon.Tool) bool {
			if inUse := h.kinds[t.Server].inUse; inUse != nil {
				return inUse(v)
			}
			return v.State == "" || catalog.InState(t, v.State)
		})
	}), nil
}

// own returns the part of a snapshot's key for the tools of tenon that the run can use.
func own(v agent.View) string {
	return " " + strconv.FormatBool(v.Artifacts) + " " + strconv.FormatBool(v.Data > 0)
}

// derived returns a snapshot derived from another one, from a cache if possible.
func (h *Host) derived(key string, derive func() *catalog.Snapshot) *catalog.Snapshot {
	h.mu.Lock()
	s, ok := h.snapshots[key]
	h.mu.Unlock()
	if !ok {
		s = derive()
		h.remember(key, s)
	}
	return s
}

// toolView is the list of tools in a request.
type toolView struct {
	tools    []tenon.Tool
	finder   string
	deferred int // number of tools, at the end of the list, that results name
}

// request returns the model request for a prompt, with the tools that the model sees.
func (h *Host) request(ctx context.Context, p *agent.Prompt) (*tenon.Request, error) {
	req := &tenon.Request{System: p.System, Messages: p.Messages, ToolChoice: p.ToolChoice}
	if p.React == nil {
		req.Output = p.Output
	}
	if s := p.Sampling; s != nil {
		req.Sampling = *s
	}
	named := map[string]bool{} // tools named in results that the model still sees
	if p.React == nil && len(p.Found) > 0 {
		for _, m := range p.Messages {
			for i := range m.Parts {
				if r := m.Parts[i].Result; r != nil {
					for _, n := range r.Found {
						named[n] = true
					}
				}
			}
		}
	}
	t, err := h.toolView(ctx, p, named)
	if err != nil {
		return nil, err
	}
	req.Tools, req.Finder, req.Deferred = t.tools, t.finder, t.deferred
	if p.React != nil {
		req.Finder = ""
	}
	req.Messages = within(req.Messages, t.tools[len(t.tools)-t.deferred:], len(named) > 0)
	return req, nil
}

// toolView lists the tools of a request: first the tools that need not be found, then the found ones in the order of
// finding. Tools that results name are the last. Equal views return the same slice, so that adapters can recognize it.
func (h *Host) toolView(ctx context.Context, p *agent.Prompt, named map[string]bool) (toolView, error) {
	all, err := h.inView(ctx, p.View, false)
	if err != nil {
		return toolView{}, err
	}
	plain, referenced := tenon.ParseChoice(p.ToolChoice).Names, []string{}
	for _, n := range p.Found {
		if named[n] {
			referenced = append(referenced, n)
		} else {
			plain = append(plain, n)
		}
	}
	key := strings.Join([]string{p.Tools, p.State, own(p.View), p.Model, strconv.FormatBool(p.React != nil),
		strings.Join(plain, " "), strings.Join(referenced, " ")}, "\x00")
	h.mu.Lock()
	t, ok := h.toolViews[key]
	h.mu.Unlock()
	if ok {
		return t, nil
	}
	base := h.derived(p.Tools+" told in "+p.State+own(p.View), func() *catalog.Snapshot {
		return all.Only(func(t *tenon.Tool) bool { return !isDeferred(t) })
	})
	list := func(s *catalog.Snapshot) []tenon.Tool {
		if p.React != nil {
			everything, _ := s.For("") // a prompt accepts every schema
			return everything
		}
		return h.offered(s, p.Model)
	}
	t.tools = list(base)
	for i := range t.tools {
		if h.kinds[t.tools[i].Server].finds {
			t.finder = t.tools[i].Name
		}
	}
	if found := slices.Concat(plain, referenced); len(found) > 0 {
		those := list(all.Only(func(t *tenon.Tool) bool { return isDeferred(t) && slices.Contains(found, t.Name) }))
		t.tools = slices.Clip(t.tools)
		for _, n := range found {
			if i := slices.IndexFunc(those, func(t tenon.Tool) bool { return t.Name == n }); i >= 0 {
				t.tools = append(t.tools, those[i])
				if slices.Contains(referenced, n) {
					t.deferred++
				}
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.toolViews) >= maxSnapshots || h.toolViews == nil {
		h.toolViews = map[string]toolView{}
	}
	h.toolViews[key] = t
	return t, nil
}

// within removes, from results, the names of tools that the request does not have because they are no longer visible.
func within(messages []*tenon.Message, tools []tenon.Tool, any bool) []*tenon.Message {
	if !any {
		return messages
	}
	gone := func(n string) bool {
		return !slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Name == n })
	}
	out := messages
	for i, m := range messages {
		if !slices.ContainsFunc(m.Parts, func(p tenon.Part) bool {
			return p.Result != nil &&
				slices.ContainsFunc(p.Result.Found, gone)
		}) {
			continue
		}
		c := &tenon.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
		for j := range c.Parts {
			if r := c.Parts[j].Result; r != nil {
				r := *r
				r.Found = slices.DeleteFunc(slices.Clone(r.Found), gone)
				c.Parts[j].Result = &r
			}
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		out[i] = c
	}
	return out
}
