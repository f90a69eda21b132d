package policy

import (
	"bytes"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// blockMembers are the members of a content block, and of a resource in it, that clients need unchanged. A text is
// masked only if it is a JSON document.
var blockMembers = []string{"type", "text", "data", "blob", "mimeType", "uri", "name", "resource"}

// MaskResult returns a tool's result in which the values of the named members are masked: in structured content, in
// metadata, in content blocks, and in texts that are JSON documents. Members of the result itself that MCP does not
// define are masked as a whole. All other bytes are kept.
func MaskResult(r *tenon.Result, names []string) *tenon.Result {
	if len(names) == 0 {
		return r
	}
	raw, err := r.MarshalJSON()
	if err != nil {
		return r // writing the result reports the error
	}
	var out []byte
	done := 0
	for t := range rawjson.Strings(raw) {
		if t.Value < done {
			continue // not a key, or inside a value that is already masked
		}
		end := rawjson.End(raw, t.Value)
		value, key := raw[t.Value:end], string(rawjson.Key(raw[t.From:t.To]))
		masked := value
		switch of := resultMember(key, t.Depth); {
		case of == memberHolds:
			continue
		case of == memberText:
			masked = maskedString(value, names)
		case of == memberOther && (IsNamed(key, names) || t.Depth == 1 && string(value) != "null"):
			masked = []byte(Masked) // MCP does not define this member, so its contents are unknown
		case of != memberStays:
			masked = Mask(value, names)
		}
		if !bytes.Equal(masked, value) {
			out = append(append(out, raw[done:t.Value]...), masked...)
			done = end
		} else {
			out, done = append(out, raw[done:end]...), end
		}
	}
	out = append(out, raw[done:]...)
	if bytes.Equal(out, raw) {
		return r
	}
	clean := new(tenon.Result)
	if clean.UnmarshalJSON(out) != nil {
		return tenon.ErrorResult("the result is withheld: it cannot be masked")
	}
	clean.Input = r.Input
	return clean
}

// The kinds of members of a result.
const (
	memberOther = iota // masked as a whole if it is named, otherwise within
	memberWithin
	memberText
	memberStays
	memberHolds // each of its members has a kind
)

// resultMember returns the kind of a member by the number of objects and arrays around it. The members of content
// blocks are three deep, the members of a resource in a block four.
func resultMember(key string, depth int) int {
	switch {
	case depth == 1 && key == "content", depth == 3 && key == "resource":
		return memberHolds
	case depth == 1 && (key == "structuredContent" || key == "_meta"):
		return memberWithin
	case depth == 1 && (key == "isError" || key == "resultType"):
		return memberStays
	case depth == 3 || depth == 4:
		if key == "text" {
			return memberText
		}
		if slices.Contains(blockMembers, key) {
			return memberStays
		}
	}
	return memberOther
}

// maskedString masks a text that is a JSON document.
func maskedString(value []byte, names []string) []byte {
	text, ok := rawjson.ParseString(value)
	if !ok {
		return Mask(value, names)
	}
	clean := MaskText(text, names)
	if clean == text {
		return value
	}
	return rawjson.AppendString(nil, clean)
}
