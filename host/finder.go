package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
)

// The tool with which a model finds others. It is offered where there are tools that
// the model is not told of.
const (
	finderServer = catalog.FinderServer
	finderTool   = "find_tools"
)

// The bounds of what is said about tools that can be found.
const (
	aboutServers = 40  // of these the finder's description tells
	aboutRunes   = 80  // about each of them
	foundRunes   = 240 // of the description of a tool that was found
)

// finder is the toolset of that tool. What it finds depends on the run that asks, so
// that it is the executor that looks: see doFind.
type finder []tenon.Tool

func newFinder() finder {
	yes := true
	return finder{{Remote: finderTool, Annotations: tenon.Annotations{ReadOnly: &yes, Idempotent: &yes},
		Description: "Finds tools by what they do.",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"What the tool is to do, in a few words of any language, such as: read a file"},` +
			`"server":{"type":"string","description":"Only tools of this server"}},` +
			`"required":["query"],"additionalProperties":false}`)}}
}

// Tools implements [tenon.Toolset].
func (f finder) Tools(context.Context) ([]tenon.Tool, error) { return f, nil }

// Call implements [tenon.Toolset].
func (finder) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return nil, tenon.Errorf(tenon.CodeInternal, "tool '%s' was called as if it were a tool of a server", c.Tool)
}

// isOwn reports whether a server is one of tenon's own, whose tools are offered only
// where there is a use for them.
func isOwn(server string) bool {
	return server == artifactServer || server == finderServer || server == dataServer
}

// hasNoTools reports whether there is nobody who could offer a tool.
func (h *Host) hasNoTools() bool {
	for name := range h.sets() {
		if !isOwn(name) {
			return false
		}
	}
	return true
}

// deferring marks, in what an agent sees, the tools that its model has to find: those
// that the configuration says so of, and all others where they are too many or too
// large. The marks are part of the run's snapshot. Most is the number of tools that
// the model's provider takes, 0 for any.
func (h *Host) deferring(s *catalog.Snapshot, most int) *catalog.Snapshot {
	c := h.config.ToolSearch.WithDefaults()
	tokens, count := 0, 0
	for _, t := range s.Tools() {
		if !isOwn(t.Server) {
			tokens += catalog.Tokens(t)
			count++
		}
	}
	all := *c.Threshold > 0 && tokens > *c.Threshold || most > 0 && count > most
	has := func(t *tenon.Tool) bool { // it has to be found
		switch {
		case isOwn(t.Server), t.Server == handoffServer, catalog.Match(c.Always, t.Name):
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
		return s.Only(func(t *tenon.Tool) bool { return t.Server != finderServer })
	}
	about := h.aboutHidden(hidden)
	return s.With(func(t *tenon.Tool) {
		mark := has(t)
		if t.Rules.Defer = &mark; !mark {
			t.Rules.Defer = nil
		}
		if t.Server == finderServer {
			t.Description = about
		}
	})
}

// isDeferred reports whether a model has to find a tool of a run's snapshot.
func isDeferred(t *tenon.Tool) bool { return t.Rules.Defer != nil && *t.Rules.Defer }

// aboutHidden is what a model is told of tools that it can find, by server.
func (h *Host) aboutHidden(hidden map[string]int) string {
	n := 0
	var list []string
	for name, count := range hidden {
		n += count
		line := name
		if c := h.config.Servers[name]; c.Description != "" || c.Title != "" {
			line += " (" + shorten(strings.TrimSpace(c.Title+" "+c.Description), aboutRunes) + ")"
		}
		list = append(list, line)
	}
	slices.Sort(list)
	if more := len(list) - aboutServers; more > 0 {
		list = append(list[:aboutServers], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("Finds tools by what they do. There are %d tools that you are not told of until you have found them. They are those of: %s. "+
		"Search before you say that something cannot be done. What was found can be called from then on like any other tool.", n, strings.Join(list, ", "))
}

// doFind looks for tools that a model is not told of yet.
func (h *Host) doFind(ctx context.Context, a engine.Attempt, c *agent.ToolCommand) ([]tenon.Event, error) {
	start := time.Now()
	var args struct{ Query, Server string }
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return []tenon.Event{h.failed(a.Step, tenon.Errorf(tenon.CodeInvalid, "the arguments cannot be read: %w", err), false, 0)}, nil
	}
	snapshot, err := h.inView(ctx, *c.View, false)
	if err != nil {
		return nil, err
	}
	if args.Server != "" {
		snapshot = snapshot.Only(func(t *tenon.Tool) bool { return t.Server == args.Server })
	}
	var hits []*tenon.Tool
	most := h.config.ToolSearch.WithDefaults().Results
	for _, hit := range snapshot.Index().Search(args.Query, most+2) { // two of them may be our own
		if !isOwn(hit.Tool.Server) && len(hits) < most {
			hits = append(hits, hit.Tool)
		}
	}
	o := agent.Outcome{Result: h.redacted(tellFound(args.Query, hits)), Duration: time.Since(start)}
	for _, t := range hits {
		if isDeferred(t) {
			o.Found = append(o.Found, t.Name)
		}
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// tellFound is what the model reads of a search. The schemas come with the next
// request.
func tellFound(query string, hits []*tenon.Tool) *tenon.Result {
	if len(hits) == 0 {
		return &tenon.Result{Content: []tenon.Content{tenon.Text("No tool fits '" + tenon.Visible(shorten(query, titleLen)) + "'. Say in other words what it is to do, or without 'server'.")}}
	}
	var b strings.Builder
	b.WriteString("These tools can be called now, the best first:")
	for _, t := range hits {
		fmt.Fprintf(&b, "\n- %s (of %s): %s", t.Name, t.Server, shorten(t.Description, foundRunes))
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(b.String())}}
}

var _ tenon.Toolset = finder(nil)
