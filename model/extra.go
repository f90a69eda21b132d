package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// ownMembers lists, for each wire, the paths of the request members that tenon sets. [Config.Extra] may not contain
// these members. It may contain other members of the same objects.
var ownMembers = map[string][]string{
	WireChat: {"model", "messages", "stream", "stream_options.include_usage", "tools", "tool_choice", "max_tokens",
		"max_completion_tokens", "temperature", "top_p", "response_format"},
	WireResponses: {"model", "input", "instructions", "stream", "store", "tools", "tool_choice", "max_output_tokens",
		"temperature", "top_p", "text.format"},
	WireAnthropic: {"model", "messages", "system", "stream", "tools", "tool_choice", "max_tokens", "temperature",
		"top_p", "cache_control", "output_config.format"},
	WireGemini: {"contents", "systemInstruction", "tools", "toolConfig.functionCallingConfig",
		"generationConfig.maxOutputTokens", "generationConfig.temperature", "generationConfig.topP",
		"generationConfig.candidateCount", "generationConfig.responseMimeType", "generationConfig.responseJsonSchema"},
	WireBedrock: {"messages", "system", "toolConfig", "inferenceConfig.maxTokens", "inferenceConfig.temperature",
		"inferenceConfig.topP"},
	WireOllama: {"model", "messages", "stream", "tools", "format", "options.num_predict", "options.temperature",
		"options.top_p"},
}

// maxExtra bounds the bytes of [Config.Extra].
const maxExtra = 256 << 10

// checkExtra checks the additional members of requests on a wire.
func checkExtra(wire string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxExtra {
		return fmt.Errorf("it has more than %d KiB", maxExtra>>10)
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return errors.New("it is not a map")
	}
	own := ownMembers[wire]
	for k, v := range rawjson.Members(raw) {
		if slices.Contains(own, string(k)) {
			return fmt.Errorf("'%s' is set by tenon itself", k)
		}
		inside := slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(p, string(k)+".") })
		if inside && !rawjson.IsObject(v) {
			return fmt.Errorf("'%s' is not a map; tenon sets other members of it", k)
		}
		for inner := range rawjson.Members(v) {
			if path := string(k) + "." + string(inner); inside && slices.Contains(own, path) {
				return fmt.Errorf("'%s' is set by tenon itself", path)
			}
		}
	}
	return nil
}

// mergeMembers merges the members of an object into head, an object without its closing brace. Objects are merged, and
// lists are joined. If both have another member of the same name, the value in head is kept, because it comes from the
// question.
func mergeMembers(head []byte, more json.RawMessage) []byte {
	if len(more) == 0 {
		return head
	}
	out := mergeObjects(make([]byte, 0, len(head)+len(more)+2), append(head, '}'), more)
	return out[:len(out)-1]
}

// mergeObjects appends the merged object of a and b. The recursion is bounded by the depth of a, which tenon wrote.
func mergeObjects(dst, a, b []byte) []byte {
	dst = append(dst, '{')
	var names []string
	member := func(k []byte) {
		if len(names) > 0 {
			dst = append(dst, ',')
		}
		names = append(names, string(k))
		dst = append(rawjson.AppendString(dst, string(k)), ':')
	}
	for k, v := range rawjson.Members(a) {
		member(k)
		w := memberOf(b, k)
		switch {
		case rawjson.IsObject(v) && rawjson.IsObject(w):
			dst = mergeObjects(dst, v, w)
		case rawjson.IsArray(v) && rawjson.IsArray(w):
			dst = joinLists(dst, v, w)
		default:
			dst = append(dst, v...)
		}
	}
	for k, v := range rawjson.Members(b) {
		if !slices.Contains(names, string(k)) {
			member(k)
			dst = append(dst, v...)
		}
	}
	return append(dst, '}')
}

// memberOf returns the first member of an object with this decoded name, or nil.
func memberOf(object, name []byte) []byte {
	for k, v := range rawjson.Members(object) {
		if string(k) == string(name) {
			return v
		}
	}
	return nil
}

// joinLists appends the list of the elements of a, followed by the elements of b that a does not contain.
func joinLists(dst, a, b []byte) []byte {
	dst = append(dst, '[')
	seen := map[string]bool{}
	for _, list := range [][]byte{a, b} {
		for v := range rawjson.Elements(list) {
			if seen[string(v)] {
				continue
			}
			if len(seen) > 0 {
				dst = append(dst, ',')
			}
			seen[string(v)] = true
			dst = append(dst, v...)
		}
	}
	return append(dst, ']')
}
