package openai

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// The Responses API supports a tool search that the client executes. A search is a separate kind of
// item. Its result contains the definitions of the found tools, which are then not needed at the
// beginning of the request. tenon represents a search as a call of the tool that finds other tools.
// The prefix of the call id distinguishes it from a function call.
const (
	searchItem   = "tool_search_call"
	searchPrefix = "toolsearch_"
)

// isSearch reports whether the id belongs to a tool search.
func isSearch(id string) bool { return strings.HasPrefix(id, searchPrefix) }

// appendSearch appends the definition of the tool that finds other tools.
func appendSearch(dst []byte, t *tenon.Tool) []byte {
	dst = append(dst, `{"type":"tool_search","execution":"client","description":`...)
	dst = rawjson.AppendString(dst, t.Description)
	dst = append(dst, `,"parameters":`...)
	return append(model.Schema(dst, t.Input), '}')
}

// appendSearchCall appends the search item for a call of the finder. It is used if the model's original item is not
// available.
func appendSearchCall(dst []byte, c *tenon.ToolCall) []byte {
	dst = append(dst, `,{"type":"`+searchItem+`","execution":"client","status":"completed","call_id":`...)
	dst = rawjson.AppendString(dst, strings.TrimPrefix(c.ID, searchPrefix))
	dst = append(dst, `,"arguments":`...)
	return append(model.AppendArguments(dst, c), '}')
}

// found appends the result of a search: the definitions of those tools of the request that the search found.
func (e items) found(dst []byte, r *tenon.ToolResult) []byte {
	dst = append(dst, `,{"type":"tool_search_output","execution":"client","status":"completed","call_id":`...)
	dst = rawjson.AppendString(dst, strings.TrimPrefix(r.ID, searchPrefix))
	dst = append(dst, `,"tools":[`...)
	empty := len(dst)
	for _, name := range r.Found {
		i := slices.IndexFunc(e.tools, func(t tenon.Tool) bool { return t.Name == name })
		if i < 0 {
			continue
		}
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = appendFlatTool(dst, &e.tools[i], true)
	}
	return append(dst, "]}"...)
}

// encodeTools returns the tools at the beginning of a request. It omits the tools whose definitions
// are in the results of searches.
func (m *Responses) encodeTools(req *tenon.Request) []byte {
	if !m.enc.search || req.Finder == "" {
		return m.tools.Get(req.Tools, encodeFlatTools)
	}
	var held []string
	for _, msg := range req.Messages {
		for i := range msg.Parts {
			if r := msg.Parts[i].Result; r != nil && isSearch(r.ID) {
				held = append(held, r.Found...)
			}
		}
	}
	first := len(req.Tools) - req.Deferred
	all := true
	for _, t := range req.Tools[first:] {
		all = all && slices.Contains(held, t.Name)
	}
	encode := func(tools []tenon.Tool) []byte {
		dst := []byte{'['}
		for i := range tools {
			if i >= first && slices.Contains(held, tools[i].Name) {
				continue
			}
			if len(dst) > 1 {
				dst = append(dst, ',')
			}
			if tools[i].Name == req.Finder {
				dst = appendSearch(dst, &tools[i])
			} else {
				dst = appendFlatTool(dst, &tools[i], false)
			}
		}
		return append(dst, ']')
	}
	if !all { // another model found some tools, so the text depends on the conversation: not cached
		return encode(req.Tools)
	}
	return m.tools.Get(req.Tools, encode)
}

// parser returns a parser that decodes a tool search as a call of the finder, and knows the connectors of the model.
func (m *Responses) parser(finder string) model.Parser {
	if !m.enc.search {
		finder = ""
	}
	return func(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
		return parseResponses(next, &output{emit: emit, finder: finder, connector: m.cfg.Connector})
	}
}
