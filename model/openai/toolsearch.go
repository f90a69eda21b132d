package openai

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// The Responses API knows a search for tools that its client answers: the model's
// wish is an item of its own, and the answer to it holds the definitions, which so
// need not stand at the beginning of the request. For us it is a call of the tool
// that finds others; the prefix of its id tells it from a call of a function.
const (
	searchItem   = "tool_search_call"
	searchPrefix = "toolsearch_"
)

// isSearch reports whether a call was such an item.
func isSearch(id string) bool { return strings.HasPrefix(id, searchPrefix) }

// appendSearch appends the tool that finds others.
func appendSearch(dst []byte, t *tenon.Tool) []byte {
	dst = append(dst, `{"type":"tool_search","execution":"client","description":`...)
	dst = rawjson.AppendString(dst, t.Description)
	dst = append(dst, `,"parameters":`...)
	return append(model.Schema(dst, t.Input), '}')
}

// appendSearchCall appends the item of a search whose own form is gone.
func appendSearchCall(dst []byte, c *tenon.ToolCall) []byte {
	dst = append(dst, `,{"type":"`+searchItem+`","execution":"client","status":"completed","call_id":`...)
	dst = rawjson.AppendString(dst, strings.TrimPrefix(c.ID, searchPrefix))
	dst = append(dst, `,"arguments":`...)
	return append(model.AppendArguments(dst, c), '}')
}

// found appends the answer to a search: what it has found, of the tools of the
// request.
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

// encodeTools returns the tools at the beginning of a request: all but those that
// the answers to searches hold.
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
	if !all { // another model has found some of them: what is sent does not follow from the list alone
		return encode(req.Tools)
	}
	return m.tools.Get(req.Tools, encode)
}

// parser returns the parser of an answer in which a search for tools is a call of
// the finder.
func (m *Responses) parser(finder string) model.Parser {
	if !m.enc.search || finder == "" {
		return ParseResponses
	}
	return func(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
		return parseResponses(next, &output{emit: emit, finder: finder})
	}
}
