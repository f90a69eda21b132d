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

// inView returns the tools that a run can call now: those that it began with and that
// are visible in the agent's state, found or not; the reader of artifacts only where
// there is something to read. A call that a person makes can have all of them.
func (h *Host) inView(ctx context.Context, v agent.View, all bool) (*catalog.Snapshot, error) {
	s, err := h.snapshot(ctx, v.Tools)
	if err != nil || all {
		return s, err
	}
	key := v.Tools + " in " + v.State + own(v)
	return h.derived(key, func() *catalog.Snapshot {
		return s.Only(func(t *tenon.Tool) bool {
			switch t.Server {
			case artifactServer:
				return v.Artifacts
			case dataServer:
				return v.Data > 0
			}
			return v.State == "" || catalog.InState(t, v.State)
		})
	}), nil
}

// own says which of tenon's own tools a run has a use for.
func own(v agent.View) string {
	return " " + strconv.FormatBool(v.Artifacts) + " " + strconv.FormatBool(v.Data > 0)
}

// derived returns a snapshot that is made of another one, remembered.
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

// told is the list of tools in a request.
type told struct {
	tools    []tenon.Tool
	finder   string
	deferred int // of tools, at the end
}

// request is what a prompt asks of the model, with the tools that it is told of.
func (h *Host) request(ctx context.Context, p *agent.Prompt) (*tenon.Request, error) {
	req := &tenon.Request{System: p.System, Messages: p.Messages, ToolChoice: p.ToolChoice}
	if p.React == nil {
		req.Output = p.Output
	}
	if s := p.Sampling; s != nil {
		req.MaxTokens, req.Temperature, req.TopP = s.MaxTokens, s.Temperature, s.TopP
	}
	named := map[string]bool{} // by results that the model still sees
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
	t, err := h.told(ctx, p, named)
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

// told lists the tools of a request: those that need not be found, then those that
// were, in the order in which they were. Those that results name are the last. The
// same view gives the same slice, by which adapters know it.
func (h *Host) told(ctx context.Context, p *agent.Prompt, named map[string]bool) (told, error) {
	all, err := h.inView(ctx, p.View, false)
	if err != nil {
		return told{}, err
	}
	plain, referenced := []string{p.ToolChoice}, []string{}
	for _, n := range p.Found {
		if named[n] {
			referenced = append(referenced, n)
		} else {
			plain = append(plain, n)
		}
	}
	key := strings.Join([]string{p.Tools, p.State, own(p.View), p.Model, strconv.FormatBool(p.React != nil), strings.Join(plain, " "), strings.Join(referenced, " ")}, "\x00")
	h.mu.Lock()
	t, ok := h.tolds[key]
	h.mu.Unlock()
	if ok {
		return t, nil
	}
	base := h.derived(p.Tools+" told in "+p.State+own(p.View), func() *catalog.Snapshot {
		return all.Only(func(t *tenon.Tool) bool { return !isDeferred(t) })
	})
	list := func(s *catalog.Snapshot) []tenon.Tool {
		if p.React != nil {
			everything, _ := s.For("") // a prompt takes every schema
			return everything
		}
		return h.offered(s, p.Model)
	}
	t.tools = list(base)
	for i := range t.tools {
		if t.tools[i].Server == finderServer {
			t.finder = t.tools[i].Name
		}
	}
	if found := slices.Concat(plain, referenced); len(found) > 1 || found[0] != "" {
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
	if len(h.tolds) >= maxSnapshots || h.tolds == nil {
		h.tolds = map[string]told{}
	}
	h.tolds[key] = t
	return t, nil
}

// within takes the names of tools that the request does not have, because they are
// not visible any more, off the results that name them.
func within(messages []*tenon.Message, tools []tenon.Tool, any bool) []*tenon.Message {
	if !any {
		return messages
	}
	gone := func(n string) bool {
		return !slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Name == n })
	}
	out := messages
	for i, m := range messages {
		if !slices.ContainsFunc(m.Parts, func(p tenon.Part) bool { return p.Result != nil && slices.ContainsFunc(p.Result.Found, gone) }) {
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
