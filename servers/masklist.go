package servers

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// A server may put a secret that it received into the texts about itself and its tools. The secrets are masked once,
// when the texts arrive: everything that is kept, shown, pinned or sent to a model is made of the masked texts.

// masked returns a text of the server without secrets.
func (s *Server) masked(text string) string {
	if s.veil != nil {
		text = s.veil.Text(text)
	}
	if s.opts.Mask != nil {
		text = s.opts.Mask(text)
	}
	return text
}

func (s *Server) maskedAll(texts []string) []string {
	for i := range texts {
		texts[i] = s.masked(texts[i])
	}
	return texts
}

// maskedJSON returns JSON of the server without secrets. changed is false if it contained none. ok is false if a
// secret cannot be masked.
func (s *Server) maskedJSON(raw []byte) (clean []byte, changed, ok bool) {
	if s.veil == nil && s.opts.Mask == nil {
		return raw, false, true
	}
	plain := string(tenon.UnescapedJSON(raw))
	text := s.masked(plain)
	if text == plain {
		return raw, false, true
	}
	return []byte(text), true, json.Valid([]byte(text))
}

// maskTools returns tools without secrets in their definitions. It leaves out a tool whose name contains a secret, or
// that contains a secret that cannot be masked.
func (s *Server) maskTools(tools []tenon.Tool) []tenon.Tool {
	var out []tenon.Tool // nil while no tool was changed
	for i := range tools {
		clean, changed, ok := s.maskedJSON(tools[i].Raw)
		if !changed {
			if out != nil {
				out = append(out, tools[i])
			}
			continue
		}
		if out == nil {
			out = append(make([]tenon.Tool, 0, len(tools)), tools[:i]...)
		}
		if ok {
			if t, err := mcp.ParseTool(clean); err == nil && t.Remote == tools[i].Remote {
				out = append(out, t)
				continue
			}
		}
		s.log.Warn("left out a tool: its definition holds a configured secret where it cannot be masked", "tool",
			s.masked(tools[i].Remote))
	}
	if out == nil {
		return tools
	}
	return out
}

// maskPrompt masks a prompt. It returns false if the prompt is left out.
func (s *Server) maskPrompt(p *mcp.Prompt) bool {
	clean, changed, ok := s.maskedJSON(p.Raw)
	if !changed {
		return true
	}
	out := mcp.Prompt{Raw: clean}
	if !ok || json.Unmarshal(clean, &out) != nil || out.Name != p.Name || len(out.Arguments) != len(p.Arguments) {
		return false
	}
	for i, a := range out.Arguments {
		if a.Name != p.Arguments[i].Name {
			return false
		}
	}
	*p = out
	return true
}

// maskResource masks a resource. It returns false if the resource is left out.
func (s *Server) maskResource(r *mcp.Resource) bool {
	clean, changed, ok := s.maskedJSON(r.Raw)
	if !changed {
		return true
	}
	out := mcp.Resource{Raw: clean}
	if !ok || json.Unmarshal(clean, &out) != nil || out.URI != r.URI || out.Template != r.Template {
		return false
	}
	*r = out
	return true
}

// maskOffers calls mask, one of the functions above, for each prompt or resource.
func maskOffers[T any](s *Server, what string, items []T, mask func(*T) bool) []T {
	var out []T
	for _, item := range items {
		if !mask(&item) {
			s.log.Warn("left out an entry of a list: it holds a configured secret where it cannot be masked",
				"list", what)
			continue
		}
		out = append(out, item)
	}
	return out
}
