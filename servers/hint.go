package servers

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/tenonhq/tenon/mcp"
)

// Hint returns how much longer the server's tools, prompts or resources, as they were listed last, may be used, and
// whether by callers with other credentials. It does not contact the server. A list that this process did not ask for,
// and a list of a connection that is gone, must not be kept. A list that the server does not offer limits nothing.
func (s *Server) Hint(list string) mcp.Hint {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conn
	if c == nil {
		return mcp.Hint{}
	}
	least := mcp.Hint{TTL: math.MaxInt64, Public: true}
	if !slices.Contains(s.status.Capabilities, list) {
		return least
	}
	known, until := s.listed, s.until
	switch list {
	case "prompts":
		known, until = s.prompts.of == c, s.prompts.until
	case "resources":
		known, until = s.resources.of == c, s.resources.until
	}
	if !known {
		return mcp.Hint{}
	}
	least.TTL = 0
	if !until.IsZero() {
		least.TTL = time.Until(until)
	}
	methods := listMethods[list]
	if list == "tools" {
		methods = []string{"tools/list"}
	}
	for _, method := range methods {
		least = least.Least(c.Hint(method))
	}
	return least
}

// HasOverlay reports whether calls in a context are made with own credentials; see [WithOverlay].
func HasOverlay(ctx context.Context) bool {
	o, _ := ctx.Value(overlayKey{}).(Overlay)
	return !o.IsZero()
}
