package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// The tools that clients see at an endpoint in mode search. A server's tool with one of these names is called through
// call_tool.
const (
	findTool = "find_tools"
	callTool = "call_tool"
)

// maxQuery bounds the words of a search, in characters.
const maxQuery = 2000

// callSchema is the input of call_tool.
const callSchema = `{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool, as ` +
	`find_tools gives it"},"arguments":{"type":"object","description":"The arguments of the tool, which fit its ` +
	`inputSchema","additionalProperties":true}},"required":["name"],"additionalProperties":false}`

// findSchema is the input of find_tools.
const findSchema = `{"type":"object","properties":{"query":{"type":"string","description":"The purpose of the tool, ` +
	`in a few words of any language, such as: read a file"},"server":{"type":"string","description":"Only tools of ` +
	`this server"}},"required":["query"],"additionalProperties":false}`

// searching is a [door] that serves an endpoint in mode search. Clients get two tools, through which they find and call
// all others.
type searching struct{ *door }

// List implements [mcp.ToolSource].
func (d searching) List(ctx context.Context) ([]json.RawMessage, error) {
	h := d.g.current()
	endpoint, err := endpointOf(h, d.key.endpoint)
	if err != nil || !endpoint.Searches() {
		return d.door.List(ctx)
	}
	seen, err := d.visible(ctx, h, endpoint)
	if err != nil {
		return nil, err
	}
	down := downOf(h)
	var pinned []json.RawMessage
	found := map[string]int{} // number of searchable tools, by server
	for _, t := range seen.tools() {
		switch {
		case !shows(h, endpoint, t):
			found[t.Server]++
		case t.Name != findTool && t.Name != callTool:
			pinned = append(pinned, h.Service().Callers().Mask(definition(t, down[t.Server])))
		}
	}
	about := aboutFound(h, found)
	list := append([]json.RawMessage{
		h.Service().Callers().Mask(definition(&tenon.Tool{Name: findTool, Description: about,
			Input:       json.RawMessage(findSchema),
			Annotations: tenon.Annotations{ReadOnly: new(true), Idempotent: new(true), OpenWorld: new(false)}}, "")),
		definition(&tenon.Tool{Name: callTool, Input: json.RawMessage(callSchema),
			Description: "Calls a tool that find_tools has found, and returns its result."}, ""),
	}, pinned...)
	d.note("tools", "tools", list)
	return list, nil
}

// shows reports whether clients see a tool of an endpoint in mode search without a search.
func shows(h *host.Host, e config.Endpoint, t *tenon.Tool) bool {
	always := h.Service().Info().Config.ToolSearch.Always
	return catalog.Match(always, t.Name) || catalog.Includes(e.Always, t) || t.Rules.Defer != nil && !*t.Rules.Defer
}

// sight is the tools that a principal can find at an endpoint.
type sight struct {
	now  *catalog.Snapshot
	lost *catalog.Snapshot // the last known tools of servers that cannot be reached at the moment
}

// all returns the tools of all servers.
func (d *door) all(ctx context.Context, h *host.Host) (sight, error) {
	none := func(*tenon.Tool) bool { return false }
	snapshot, problems, err := host.ClientTools(ctx, h)
	if err != nil {
		return sight{}, err
	}
	s := sight{snapshot, snapshot.Only(none)}
	lost := unreached(problems)
	if len(lost) == 0 {
		return s, nil
	}
	if known, err := h.Tools().Known(ctx); err == nil { // on an error, only the tools of other servers are found
		s.lost = known.Only(func(t *tenon.Tool) bool { return lost[t.Server] != nil })
	}
	return s, nil
}

// visible returns the tools of an endpoint that the rules do not deny to the principal.
func (d *door) visible(ctx context.Context, h *host.Host, e config.Endpoint) (sight, error) {
	all, err := d.all(ctx, h)
	if err != nil {
		return sight{}, err
	}
	return all.only(func(t *tenon.Tool) bool {
		_, forbidden := h.Approvals().Rules().Forbids(t, "", d.key.who)
		return !forbidden && e.Has(t)
	}), nil
}

// only returns the tools that want accepts.
func (s sight) only(want func(*tenon.Tool) bool) sight {
	return sight{s.now.Only(want), s.lost.Only(func(t *tenon.Tool) bool {
		_, ok := s.now.Lookup(t.Name)
		return !ok && want(t)
	})}
}

// tools returns all tools.
func (s sight) tools() []*tenon.Tool { return slices.Concat(s.now.Tools(), s.lost.Tools()) }

// names returns the names of all tools.
func (s sight) names() []string { return slices.Concat(s.now.Names(), s.lost.Names()) }

// lookup returns the tool with a name.
func (s sight) lookup(name string) (*tenon.Tool, bool) {
	if t, ok := s.now.Lookup(name); ok {
		return t, true
	}
	return s.lost.Lookup(name)
}

// search returns at most so many tools that fit a query. Tools of servers that cannot be reached come last.
func (s sight) search(ctx context.Context, h *host.Host, query string, most int) (list []*tenon.Tool) {
	for _, of := range []*catalog.Snapshot{s.now, s.lost} {
		if len(of.Tools()) == 0 {
			continue
		}
		for _, hit := range host.SearchTools(ctx, h, of, query, most) {
			list = append(list, hit.Tool)
		}
	}
	return list[:min(most, len(list))]
}

// aboutFound returns the description of find_tools, which names the servers of the searchable tools.
func aboutFound(h *host.Host, found map[string]int) string {
	n, servers := h.Service().Info().Config.About(found)
	return fmt.Sprintf("Finds tools by what they do, and returns their definitions. There are %d more tools than in "+
		"your list. Their servers: %s. Search before you say that something cannot be done, and call what you found "+
		"with %s.", n, cmp.Or(servers, "none"), callTool)
}

// Call implements [mcp.ToolSource].
func (d searching) Call(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	h := d.g.current()
	endpoint, err := endpointOf(h, d.key.endpoint)
	if err != nil || !endpoint.Searches() || r.Name != findTool && r.Name != callTool {
		return d.door.Call(ctx, r)
	}
	seen, err := d.visible(ctx, h, endpoint)
	if err != nil {
		return d.answer(r, nil, err)
	}
	if r.Name == findTool {
		raw, err := d.find(ctx, h, seen, r.Arguments)
		if err != nil {
			return d.answer(r, nil, err)
		}
		return raw, nil
	}
	inner, err := innerCall(r)
	if err != nil {
		return d.answer(r, nil, err)
	}
	if _, ok := seen.lookup(inner.Name); ok {
		return d.door.Call(ctx, inner)
	}
	none := failed(tenon.Errorf(tenon.CodeTool, "there is no tool '%s'%s", tenon.Visible(inner.Name),
		meant(inner.Name, seen.names())))
	if all, err := d.all(ctx, h); err == nil {
		if t, ok := all.lookup(inner.Name); ok && endpoint.Has(t) {
			// The rules deny the tool. The journal records the attempt, but the client does not learn that the tool
			// exists.
			raw, err := d.door.Call(ctx, inner)
			if err == nil && string(rawjson.Field(raw, "isError")) != "true" {
				return raw, nil // the rules have changed in between
			}
		}
	}
	return h.Service().Callers().Mask(none), nil
}

// innerCall returns the request for the tool that the arguments of call_tool name. Errors: invalid.
func innerCall(r *mcp.ToolRequest) (*mcp.ToolRequest, error) {
	inner := r.Inner()
	inner.Name, inner.Arguments = "", json.RawMessage("{}")
	for k, v := range rawjson.Members(r.Arguments) {
		switch string(k) {
		case "name":
			inner.Name = rawjson.String(v)
		case "arguments":
			inner.Arguments = v
			if text, ok := rawjson.ParseString(v); ok { // some models write the object as a text
				inner.Arguments = json.RawMessage(text)
			}
		default:
			return nil, tenon.Errorf(tenon.CodeInvalid, "%s has no parameter '%s'; the arguments of the tool "+
				"belong into 'arguments'", callTool, tenon.Visible(string(k)))
		}
	}
	switch {
	case inner.Name == "":
		return nil, tenon.Errorf(tenon.CodeInvalid, "'name' is missing: the name of a tool that %s has found", findTool)
	case !json.Valid(inner.Arguments) || !rawjson.IsObject(inner.Arguments):
		return nil, tenon.Errorf(tenon.CodeInvalid, "'arguments' is no JSON object; the inputSchema of '%s' has its "+
			"form", tenon.Visible(inner.Name))
	}
	return &inner, nil
}

// find answers find_tools with the definitions of the matching tools, best first.
func (d *door) find(ctx context.Context, h *host.Host, seen sight, args []byte) (json.RawMessage, error) {
	query, ok := rawjson.ParseString(rawjson.Field(args, "query"))
	if !ok || strings.TrimSpace(query) == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "'query' is missing: say in a few words what the tool is to do")
	}
	if server := rawjson.String(rawjson.Field(args, "server")); server != "" {
		var names []string
		for _, t := range seen.tools() {
			names = append(names, t.Server)
		}
		slices.Sort(names)
		if names = slices.Compact(names); !slices.Contains(names, server) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "no tool is of a server '%s'%s", tenon.Visible(server),
				meant(server, names))
		}
		seen = seen.only(func(t *tenon.Tool) bool { return t.Server == server })
	}
	query = tenon.Shorten(query, maxQuery)
	down := downOf(h)
	var list []json.RawMessage
	most := h.Service().Info().Config.ToolSearch.WithDefaults().Results
	for _, t := range seen.search(ctx, h, query, most) {
		list = append(list, definition(t, down[t.Server]))
	}
	structured := append(member([]byte{'{'}, "tools", joined(list)), '}')
	about := string(structured)
	if len(list) == 0 {
		about = "No tool fits. Say in other words what it is to do, or search without 'server'."
	}
	b := append(text([]byte(`{"content":[{"type":"text"`), "text", about), `}]`...)
	return h.Service().Callers().Mask(append(member(b, "structuredContent", structured), '}')), nil
}

// failed returns an error as a tool result.
func failed(err error) []byte {
	return append(text([]byte(`{"content":[{"type":"text"`), "text", err.Error()), `}],"isError":true}`...)
}

// meant returns the end of an error about an unknown name: a similar name, or the advice to search.
func meant(given string, names []string) string {
	if best := tenon.Nearest(given, names); best != "" {
		return fmt.Sprintf("; did you mean '%s'?", best)
	}
	return "; search for it with " + findTool
}

var _ mcp.ToolSource = searching{}
