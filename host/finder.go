package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
)

// finderTools is the tool with which a model finds others. It is offered if some tools are not part of the requests to
// the model.
var finderTools = []tenon.Tool{{Remote: "find_tools", Annotations: harmless,
	Description: "Finds tools by what they do.",
	Input: json.RawMessage(`{"type":"object","properties":{` +
		`"query":{"type":"string","description":"The purpose of the tool, in a few words of any ` +
		`language, such as: read a file"},` +
		`"server":{"type":"string","description":"Only tools of this server"}},` +
		`"required":["query"],"additionalProperties":false}`)}}

// foundRunes is the maximum length of the description of a found tool.
const foundRunes = 240

// hasNoTools reports whether nothing can offer a tool.
func (h *Host) hasNoTools() bool {
	for name := range h.sets() {
		if !h.isHelper(name) {
			return false
		}
	}
	return true
}

// deferring marks the tools of an agent that its model has to find. These are the tools with the configured mark, and
// all other tools if they are too many or too large. The marks are part of the run's snapshot. Most is the number of
// tools that the model's provider accepts, or 0 for any.
func (h *Host) deferring(s *catalog.Snapshot, most int) *catalog.Snapshot {
	c := h.config.ToolSearch.WithDefaults()
	tokens, count := 0, 0
	for _, t := range s.Tools() {
		if !h.isHelper(t.Server) {
			tokens += catalog.Tokens(t)
			count++
		}
	}
	all := *c.Threshold > 0 && tokens > *c.Threshold || most > 0 && count > most
	has := func(t *tenon.Tool) bool { // reports whether the model sees the tool only after it was found
		switch {
		case h.kinds[t.Server].always != nil, catalog.Match(c.Always, t.Name):
			return false
		case t.Rules.Defer != nil:
			return *t.Rules.Defer
		}
		return all
	}
	hidden := map[string]int{}
	for _, t := range s.Tools() {
		if has(t) {
			hidden[t.Server]++
		}
	}
	if len(hidden) == 0 {
		return s.Only(func(t *tenon.Tool) bool { return !h.kinds[t.Server].finds })
	}
	about := h.aboutHidden(hidden)
	return s.With(func(t *tenon.Tool) {
		mark := has(t)
		t.Rules.Defer = &mark
		if !mark {
			t.Rules.Defer = nil
		}
		if h.kinds[t.Server].finds {
			t.Description = about
		}
	})
}

// isDeferred reports whether a model has to find a tool of a run's snapshot.
func isDeferred(t *tenon.Tool) bool { return t.Rules.Defer != nil && *t.Rules.Defer }

// aboutHidden describes the tools that a model can find, by server.
func (h *Host) aboutHidden(hidden map[string]int) string {
	n, servers := h.config.About(hidden)
	return fmt.Sprintf("Finds tools by what they do. There are %d more tools, which your list of tools shows only "+
		"after you have found them. Their servers: %s. Search before you say that something cannot be done. You can "+
		"call a found tool like any other tool.", n, servers)
}

// doFind searches among the tools that the run can call.
func (h *Host) doFind(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	start := time.Now()
	c, err := s.Tool()
	if err != nil {
		return nil, err
	}
	var args struct{ Query, Server string }
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return []tenon.Event{h.executor.Failed(s.Step, tenon.Errorf(tenon.CodeInvalid,
			"the arguments cannot be read: %w", err), false, 0)}, nil
	}
	var v agent.View // a call that a person makes has no tools
	if c.View != nil {
		v = *c.View
	}
	snapshot, err := h.inView(ctx, v, false)
	if err != nil {
		return nil, err
	}
	if args.Server != "" {
		snapshot = snapshot.Only(func(t *tenon.Tool) bool { return t.Server == args.Server })
	}
	var hits []*tenon.Tool
	most := h.config.ToolSearch.WithDefaults().Results
	// Two of the hits may be the finder's own tools, which are left out.
	for _, hit := range SearchTools(ctx, h, snapshot, args.Query, most+2) {
		if !h.isHelper(hit.Tool.Server) && len(hits) < most {
			hits = append(hits, hit.Tool)
		}
	}
	o := agent.Outcome{Result: h.redactor.Result(tellFound(args.Query, hits)), Duration: time.Since(start)}
	for _, t := range hits {
		if isDeferred(t) {
			o.Found = append(o.Found, t.Name)
		}
	}
	return []tenon.Event{{Step: s.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// tellFound makes the result of a search for the model. The next request has the schemas.
func tellFound(query string, hits []*tenon.Tool) *tenon.Result {
	if len(hits) == 0 {
		return &tenon.Result{Content: []tenon.Content{tenon.Text("No tool fits '" +
			tenon.Visible(tenon.Shorten(query, titleLen)) + "'. Say in other words what it is to do, or without " +
			"'server'.")}}
	}
	var b strings.Builder
	b.WriteString("These tools can be called now, the best first:")
	for _, t := range hits {
		fmt.Fprintf(&b, "\n- %s (of %s): %s", t.Name, t.Server, tenon.Shorten(t.Description, foundRunes))
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(b.String())}}
}
