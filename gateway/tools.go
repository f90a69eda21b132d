package gateway

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/servers"
)

// unavailableKey is the member of a tool's _meta that marks a tool whose server could not be reached. The value is the
// reason.
const unavailableKey = "tenonhq.github.io/unavailable"

// List implements [mcp.ToolSource]. It returns the tools of the catalog that the rules do not deny to the principal.
// For a server that cannot be reached, it returns the tools of the last listing, and marks them.
func (d *door) List(ctx context.Context) ([]json.RawMessage, error) {
	h := d.g.current()
	endpoint, err := endpointOf(h, d.key.endpoint)
	if err != nil {
		return nil, err
	}
	snapshot, problems, err := host.ClientTools(ctx, h)
	if err != nil {
		return nil, err
	}
	down, lost := downOf(h), unreached(problems)
	state := listState{h, snapshot, h.Approvals().Rules().Digest(), h.Service().Info().Masks}
	if last := d.g.lists.find(d.key, state, down); last != nil && len(lost) == 0 {
		d.noteSum("tools", "tools", last.sum)
		return last.tools, nil
	}
	tools := snapshot.Tools()
	list := make([]json.RawMessage, 0, len(tools))
	names := make(map[string]bool, len(tools))
	add := func(t *tenon.Tool, why string) {
		if names[t.Name] || !endpoint.Has(t) {
			return
		}
		if _, forbidden := h.Approvals().Rules().Forbids(t, "", d.key.who); forbidden {
			return
		}
		names[t.Name] = true
		list = append(list, d.g.lists.definition(state, t, why))
	}
	for _, t := range tools {
		add(t, down[t.Server])
	}
	if len(lost) > 0 {
		known, err := h.Tools().Known(ctx)
		if err != nil {
			known = snapshot // without the last listings
		}
		for _, t := range known.Tools() {
			if why := lost[t.Server]; why != nil {
				add(t, tenon.Visible(why.Error()))
			}
		}
	}
	sum := digestOf(list)
	d.noteSum("tools", "tools", sum)
	if len(lost) == 0 && d.g.current() == h { // the last listings of lost servers are not part of the snapshot
		d.g.lists.keep(d.key, &keptList{state: state, down: down, tools: list, sum: sum})
	}
	return list, nil
}

// downOf returns the servers that cannot be reached at the moment, with the reasons. Tools of these servers are listed
// from an earlier listing.
func downOf(h *host.Host) map[string]string {
	var down map[string]string
	for name, s := range h.Service().Connections() {
		switch state, err := s.State(); state {
		case servers.StateBackoff, servers.StateFailed, servers.StateAuth:
			if err == nil {
				continue
			}
			if down == nil {
				down = map[string]string{}
			}
			down[name] = tenon.Visible(err.Message)
		}
	}
	return down
}

// unreached returns the errors of servers that could not be asked for their tools. It omits servers whose tools are
// held back, for example because they differ from their pins.
func unreached(problems []host.Problem) map[string]error {
	lost := map[string]error{}
	for _, p := range problems {
		switch tenon.ErrorCode(p.Err) {
		case tenon.CodeUnreachable, tenon.CodeTimeout, tenon.CodeProtocol:
			lost[p.Server] = p.Err
		}
	}
	delete(lost, "")
	return lost
}

// definition returns a tool as an MCP client sees it. It has the texts, schemas and annotations of the catalog. All
// other members are unchanged. If the tool's server could not be reached, why is the reason.
func definition(t *tenon.Tool, why string) []byte {
	b := text([]byte{'{'}, "name", t.Name)
	if t.Title != "" {
		b = text(b, "title", t.Title)
	}
	if t.Description != "" {
		b = text(b, "description", t.Description)
	}
	input := t.Input
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	b = member(b, "inputSchema", input)
	if len(t.Output) > 0 {
		b = member(b, "outputSchema", t.Output)
	}
	b = member(b, "annotations", annotations(t))
	var meta []byte
	for k, v := range rawjson.Members(t.Raw) {
		switch string(k) {
		case "name", "title", "description", "inputSchema", "outputSchema", "annotations":
		case "execution": // the gateway waits for tasks itself
		case "_meta":
			meta = tenon.VisibleJSON(v)
		default:
			b = member(b, string(k), tenon.VisibleJSON(v))
		}
	}
	if why != "" {
		meta = with(meta, unavailableKey, rawjson.AppendString(nil, why))
	}
	if rawjson.IsObject(meta) {
		b = member(b, "_meta", meta)
	}
	return append(b, '}')
}

// annotations returns the effective annotations of a tool. Members that tenon does not know are unchanged.
func annotations(t *tenon.Tool) []byte {
	b := []byte{'{'}
	if t.Annotations.Title != "" {
		b = text(b, "title", tenon.Visible(t.Annotations.Title))
	}
	for _, hint := range []struct {
		name  string
		value *bool
	}{{"readOnlyHint", t.Annotations.ReadOnly}, {"destructiveHint", t.Annotations.Destructive},
		{"idempotentHint", t.Annotations.Idempotent}, {"openWorldHint", t.Annotations.OpenWorld}} {
		if hint.value != nil && *hint.value {
			b = member(b, hint.name, []byte("true"))
		} else if hint.value != nil {
			b = member(b, hint.name, []byte("false"))
		}
	}
	for k, v := range rawjson.Members(rawjson.Field(t.Raw, "annotations")) {
		switch string(k) {
		case "title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
		default:
			b = member(b, string(k), tenon.VisibleJSON(v))
		}
	}
	return append(b, '}')
}

// member appends a member to an object that is not closed yet.
func member(b []byte, key string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(rawjson.AppendString(b, key), ':'), value...)
}

func text(b []byte, key, value string) []byte {
	return member(b, key, rawjson.AppendString(nil, value))
}

// with returns an object with an additional member. A value that is not an object counts as an empty object.
func with(object []byte, key string, value []byte) []byte {
	b := []byte{'{'}
	for k, v := range rawjson.Members(object) {
		if string(k) != key {
			b = member(b, string(k), v)
		}
	}
	return append(member(b, key, value), '}')
}
