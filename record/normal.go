package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dropped contains the request members that may differ between runs.
var dropped = map[string]bool{
	"max_tokens": true, "max_completion_tokens": true, "max_output_tokens": true,
	"metadata": true, "user": true, "prompt_cache_key": true,
}

// idMembers contains the members with ids of calls, which are replaced by numbers.
var idMembers = map[string]bool{"id": true, "tool_use_id": true, "tool_call_id": true, "call_id": true}

// data contains the members whose content belongs to tools. It is compared unchanged.
var data = map[string]bool{"input": true, "input_schema": true, "parameters": true, "arguments": true}

// normal decodes a request for comparison. Numbers keep their digits. Ids are numbered in the order
// of their first occurrence.
func normal(request []byte) any {
	dec := json.NewDecoder(bytes.NewReader(request))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(request)
	}
	if top, ok := v.(map[string]any); ok {
		for k := range dropped {
			delete(top, k)
		}
	}
	ids := map[string]string{}
	// Messages are lists, so ids are numbered in the order of the messages.
	walk(v, ids)
	return v
}

func walk(v any, ids map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if s, ok := v[k].(string); ok && idMembers[k] {
				if ids[s] == "" {
					ids[s] = "id " + strconv.Itoa(len(ids)+1)
				}
				v[k] = ids[s]
			} else if !data[k] {
				walk(v[k], ids)
			}
		}
	case []any:
		for _, e := range v {
			walk(e, ids)
		}
	}
}

// difference returns the first difference between two requests, and the number of equal leaves before it.
func difference(path string, want, got any) (at string, same int, equal bool) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return place(path), 0, false
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			gv, ok := g[k]
			if !ok {
				return place(path + "." + k), same, false
			}
			at, n, equal := difference(path+"."+k, w[k], gv)
			same += n
			if !equal {
				return at, same, false
			}
		}
		for _, k := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[k]; !ok {
				return place(path + "." + k), same, false
			}
		}
		return "", same, true
	case []any:
		g, ok := got.([]any)
		if !ok {
			return place(path), 0, false
		}
		for i := range w {
			if i >= len(g) {
				break
			}
			at, n, equal := difference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
			same += n
			if !equal {
				return at, same, false
			}
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s (%d recorded, %d now)", place(path), len(w), len(g)), same, false
		}
		return "", same, true
	}
	if want == got {
		return "", 1, true
	}
	if text, ok := want.(string); ok && strings.Contains(text, mask) {
		return place(path) + ", where the recording has a masked secret (configure the secret that is sent now)", 0,
			false
	}
	return place(path), 0, false
}

// nearest is the recording with the most equal leaves among the recordings that do not match a request.
type nearest struct {
	name, where string
	deep        int
}

// compare reports whether a request matches a recording. If not, it updates the nearest recording.
func (n *nearest) compare(name string, want, got any) bool {
	at, deep, same := difference("", want, got)
	if !same && (n.name == "" || deep > n.deep) {
		*n = nearest{name, at, deep}
	}
	return same
}

func place(path string) string {
	if path == "" {
		return "the whole request"
	}
	return path[1:]
}
