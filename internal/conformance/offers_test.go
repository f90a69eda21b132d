package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// cached encodes a list or a resource with the members that the modern era requires in it.
func cached(key string, v any) (json.RawMessage, error) {
	return encode(object{key: v, "ttlMs": 0, "cacheScope": "public"}), nil
}

// offers answers the requests about prompts, resources and completions.
func (f *fixture) offers(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "prompts/list":
		return cached("prompts", f.prompts())
	case "prompts/get":
		return f.prompt(ctx, params)
	case "resources/list":
		return cached("resources", []object{
			{"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
			{"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
			{"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"}})
	case "resources/templates/list":
		return cached("resourceTemplates", []object{{"uriTemplate": "test://template/{id}/data", "name": "template",
			"mimeType": "application/json"}})
	case "resources/read":
		return read(rawjson.String(rawjson.Field(params, "uri")))
	case "completion/complete":
		return encode(object{"completion": object{"values": []string{"paris"}, "total": 1, "hasMore": false}}), nil
	}
	return nil, nil
}

// read answers resources/read.
func read(uri string) (json.RawMessage, error) {
	one := object{"uri": uri, "mimeType": "text/plain"}
	id, isTemplate := strings.CutPrefix(uri, "test://template/")
	switch {
	case uri == "test://static-binary":
		one["mimeType"], one["blob"] = "image/png", image
	case uri == "test://static-text", uri == "test://watched-resource":
		one["text"] = "a text"
	case isTemplate:
		one["text"] = fmt.Sprintf(`{"id":%q}`, strings.TrimSuffix(id, "/data"))
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no resource %s", uri)
	}
	return cached("contents", []object{one})
}

// prompts returns the definitions of the prompts.
func (f *fixture) prompts() []object {
	argument := func(name string) object { return object{"name": name, "description": "a text", "required": true} }
	list := []object{
		{"name": "test_simple_prompt", "description": "a prompt"},
		{"name": "test_prompt_with_arguments", "description": "a prompt", "arguments": []object{argument("arg1"), argument("arg2")}},
		{"name": "test_prompt_with_embedded_resource", "description": "a prompt", "arguments": []object{argument("resourceUri")}},
		{"name": "test_prompt_with_image", "description": "a prompt"},
		{"name": "test_input_required_result_prompt", "description": "a prompt"},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.changed {
		list = append(list, object{"name": fmt.Sprintf("added_%d", i), "description": "added"})
	}
	return list
}

// prompt answers prompts/get.
func (f *fixture) prompt(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	arguments := rawjson.Field(params, "arguments")
	argument := func(name string) string { return rawjson.String(rawjson.Field(arguments, name)) }
	var blocks []object
	switch rawjson.String(rawjson.Field(params, "name")) {
	case "test_prompt_with_arguments":
		blocks = []object{words("arg1=" + argument("arg1") + " arg2=" + argument("arg2"))}
	case "test_prompt_with_embedded_resource":
		blocks = []object{{"type": "resource", "resource": object{"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "embedded"}},
			words("see above")}
	case "test_prompt_with_image":
		blocks = []object{{"type": "image", "data": image, "mimeType": "image/png"}, words("see above")}
	case "test_input_required_result_prompt":
		r := mcp.RequestOf(ctx)
		r.Responses = rawjson.Field(params, "inputResponses")
		answers, result := asked{"user_context": elicitation("Which context?", "context", "string")}.ask(ctx, r, "")
		if result != nil {
			return result, nil
		}
		blocks = []object{words("Context: " + value(answers["user_context"], "context"))}
	default:
		blocks = []object{words("a prompt")}
	}
	var messages []object
	for _, b := range blocks {
		messages = append(messages, object{"role": "user", "content": b})
	}
	return encode(object{"description": "a prompt", "messages": messages}), nil
}
