package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// block is a content block under construction: the object of its start event, and the text that
// deltas add to its members. Strings stay escaped until the block is complete, so they are sent
// back unchanged.
type block struct {
	kind  string
	start []byte
	grown []grown
	ended bool // content_block_stop was received
}

// grown is a member that deltas extend.
type grown struct {
	name string
	form form
	buf  []byte
}

type form int

const (
	joined form = iota // string bodies that are concatenated
	listed             // elements of an array
	single             // the last value wins
	input              // pieces of the text of a JSON value
)

// newBlock returns a block for the object of its start event, or nil if the object has no type.
func newBlock(content []byte) *block {
	kind := rawjson.String(rawjson.Field(content, "type"))
	if kind == "" {
		return nil
	}
	return &block{kind: kind, start: append([]byte(nil), content...)}
}

// add adds a member of a delta.
func (b *block) add(delta, name string, val []byte) {
	switch {
	case delta == "input_json_delta" && name == "partial_json":
		b.grow("input", input, rawjson.StringBody(val))
	case delta == "citations_delta" && name == "citation":
		b.grow("citations", listed, val)
	case delta == "signature_delta":
		b.grow(name, single, val)
	case len(val) > 0 && val[0] == '"':
		b.grow(name, joined, rawjson.StringBody(val))
	default:
		b.grow(name, single, val)
	}
}

func (b *block) grow(name string, f form, piece []byte) {
	var g *grown
	for i := range b.grown {
		if b.grown[i].name == name {
			g = &b.grown[i]
		}
	}
	if g == nil {
		b.grown = append(b.grown, grown{name: name, form: f})
		g = &b.grown[len(b.grown)-1]
	}
	switch f {
	case single:
		g.form, g.buf = single, append(g.buf[:0], piece...)
	case listed:
		if len(g.buf) > 0 {
			g.buf = append(g.buf, ',')
		}
		g.buf = append(g.buf, piece...)
	default:
		g.buf = append(g.buf, piece...)
	}
}

func (b *block) find(name string) *grown {
	for i := range b.grown {
		if b.grown[i].name == name {
			return &b.grown[i]
		}
	}
	return nil
}

// text returns a string member including its deltas.
func (b *block) text(name string) string {
	body := rawjson.StringBody(rawjson.Field(b.start, name))
	if g := b.find(name); g != nil {
		if g.form == single {
			return rawjson.String(g.buf)
		}
		if len(body) == 0 {
			return rawjson.DecodeBody(g.buf)
		}
		return rawjson.DecodeBody(append(bytes.Clone(body), g.buf...))
	}
	return rawjson.DecodeBody(body)
}

// arguments returns the text of the tool input: the deltas, or the input in the start event.
func (b *block) arguments() string {
	if g := b.find("input"); g != nil {
		if s := rawjson.DecodeBody(g.buf); s != "" {
			return s
		}
	}
	if v := rawjson.Field(b.start, "input"); !rawjson.IsNull(v) {
		return string(v)
	}
	return ""
}

// raw returns the complete block: first the members of the start event in their order, then the
// members that occurred only in deltas.
func (b *block) raw() json.RawMessage {
	out := append(make([]byte, 0, len(b.start)+2), '{')
	seen := map[string]bool{}
	member := func(name, val []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), `":`...)
		out = append(out, val...)
	}
	for k, v := range rawjson.Fields(b.start) {
		seen[string(k)] = true
		if g := b.find(string(k)); g != nil {
			v = g.value(v)
		}
		member(k, v)
	}
	for i := range b.grown {
		if g := &b.grown[i]; !seen[g.name] {
			member([]byte(g.name), g.value(nil))
		}
	}
	return append(out, '}')
}

// value returns the complete value of the member. start is its value in the start event.
func (g *grown) value(start []byte) []byte {
	switch g.form {
	case joined:
		out := append([]byte{'"'}, rawjson.StringBody(start)...)
		return append(append(out, g.buf...), '"')
	case listed:
		out := []byte{'['}
		for v := range rawjson.Elements(start) {
			out = append(append(out, v...), ',')
		}
		return append(append(out, g.buf...), ']')
	case input:
		if s := rawjson.DecodeBody(g.buf); s != "" {
			return []byte(s)
		}
		if start == nil {
			return []byte("{}")
		}
		return start
	}
	return g.buf
}

// plain reports whether the block has only the named members. Then the fields of a Part are enough
// to encode it again.
func (b *block) plain(names ...string) bool {
	known := func(name string) bool {
		return slices.Contains(names, name)
	}
	for k, v := range rawjson.Fields(b.start) {
		if !known(string(k)) && !rawjson.IsNull(v) {
			return false
		}
	}
	for i := range b.grown {
		if !known(b.grown[i].name) {
			return false
		}
	}
	return true
}

// part returns the block as a part of the message. cut means that the answer may have ended inside of the block. If
// part is nil, the block is omitted, and the string is a warning with the reason.
func (b *block) part(cut bool) (*tenon.Part, string) {
	switch b.kind {
	case "text":
		p := &tenon.Part{Type: tenon.PartText, Text: b.text("text")}
		p.Citations = b.citations(p.Text)
		if !b.plain("type", "text") {
			p.Wire, p.Raw = wire, b.raw()
		}
		if p.Text == "" && p.Raw == nil {
			return nil, ""
		}
		return p, ""
	case "thinking":
		p := &tenon.Part{Type: tenon.PartThinking, Text: b.text("thinking"), Wire: wire}
		if !cut || b.text("signature") != "" {
			p.Raw = b.raw() // without a signature, a truncated thought would be refused
		}
		return p, ""
	case "tool_use":
		return b.call(cut)
	}
	raw := b.raw()
	// A block without deltas is valid, because its start event was checked. It is not checked again: results of web
	// searches are large.
	if len(b.grown) > 0 && !json.Valid(raw) || cut && b.find("input") != nil && !b.ended {
		return nil, fmt.Sprintf("a %s block was cut off and is omitted", b.kind)
	}
	return &tenon.Part{Type: tenon.PartOpaque, Text: use(b.kind, raw), Wire: wire, Raw: raw}, ""
}

// use describes a block in which the provider used one of the provider's tools, or in which that use failed.
func use(kind string, raw []byte) string {
	switch kind {
	case "server_tool_use", "mcp_tool_use":
		name := rawjson.String(rawjson.Field(raw, "name"))
		if server := rawjson.String(rawjson.Field(raw, "server_name")); server != "" {
			name = server + "." + name
		}
		return model.Use(name, rawjson.Field(raw, "input"))
	}
	if code := rawjson.String(rawjson.Field(rawjson.Field(raw, "content"), "error_code")); code != "" {
		return model.Use(strings.TrimSuffix(kind, "_tool_result")+" failed:", []byte(code))
	}
	return ""
}

func (b *block) call(cut bool) (*tenon.Part, string) {
	c := &tenon.ToolCall{ID: b.text("id"), Name: b.text("name")}
	switch {
	case c.Name == "":
		return nil, "a tool call without a name is omitted"
	case c.ID == "":
		return nil, fmt.Sprintf("a call of %s without an id is omitted", c.Name)
	}
	args := b.arguments()
	// A call that is cut off before its arguments looks like a call without arguments.
	g := b.find("input")
	if cut && (!json.Valid([]byte(args)) || g == nil && args == "{}" || g != nil && len(g.buf) == 0) {
		return nil, fmt.Sprintf("the call of %s was cut off and is omitted", c.Name)
	}
	model.SetArguments(c, args)
	p := &tenon.Part{Type: tenon.PartCall, Call: c}
	if c.Malformed == "" && !b.plain("type", "id", "name", "input") {
		p.Wire, p.Raw = wire, b.raw()
	}
	return p, ""
}
