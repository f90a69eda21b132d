package model

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Body is a request body of shared pieces: a message has the same encoded slice on every turn. The
// pieces must not be modified. Building a body costs time for its new pieces, not for its bytes.
type Body struct {
	groups [][][]byte
	own    bool // the last group belongs to this body and may grow
	size   int64
}

// Add appends a piece. The body keeps the slice.
func (b *Body) Add(p []byte) {
	if len(p) == 0 {
		return
	}
	b.size += int64(len(p))
	if !b.own {
		b.groups = append(b.groups, nil)
		b.own = true
	}
	last := len(b.groups) - 1
	b.groups[last] = append(b.groups[last], p)
}

// share appends pieces that other bodies use, too.
func (b *Body) share(pieces [][]byte, size int64) {
	if len(pieces) > 0 {
		b.groups, b.own = append(b.groups, pieces), false
		b.size += size
	}
}

// Len returns the number of bytes.
func (b *Body) Len() int64 { return b.size }

// Bytes returns a copy of the body in one slice.
func (b *Body) Bytes() []byte {
	out := make([]byte, 0, b.size)
	for _, g := range b.groups {
		for _, p := range g {
			out = append(out, p...)
		}
	}
	return out
}

// Reader returns a new reader of the body. Each attempt of a request uses its own reader.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{groups: b.groups} }

type bodyReader struct {
	groups [][][]byte // the remaining groups
	pieces [][]byte   // the remaining pieces of the current group
	piece  []byte     // the rest of the current piece
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		switch {
		case len(r.piece) > 0:
			c := copy(p[n:], r.piece)
			r.piece = r.piece[c:]
			n += c
		case len(r.pieces) > 0:
			r.piece, r.pieces = r.pieces[0], r.pieces[1:]
		case len(r.groups) > 0:
			r.pieces, r.groups = r.groups[0], r.groups[1:]
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
	return n, nil
}

// Close does nothing, because the pieces belong to the body.
func (r *bodyReader) Close() error { return nil }

// ToolCache caches the wire form of the last few tool lists. A run uses the same list on every
// turn. The cache identifies a list by its slice, which must not be modified once it is in a
// request. The zero value is ready to use. A ToolCache is safe for concurrent use.
type ToolCache struct {
	mu   sync.Mutex
	ring [4]struct {
		tools []tenon.Tool
		wire  []byte
	}
	next int
}

// Get returns encode(tools), from the cache if possible.
func (c *ToolCache) Get(tools []tenon.Tool, encode func([]tenon.Tool) []byte) []byte {
	if len(tools) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ring {
		// The entry keeps the array alive, so an equal address means the same array.
		if len(e.tools) == len(tools) && &e.tools[0] == &tools[0] {
			return e.wire
		}
	}
	wire := encode(tools)
	c.ring[c.next].tools, c.ring[c.next].wire = tools, wire
	c.next = (c.next + 1) % len(c.ring)
	return wire
}

// Schema appends the compacted input schema of a tool. A tool without a schema accepts any object.
func Schema(dst []byte, schema json.RawMessage) []byte {
	return rawjson.AppendRaw(dst, schema, `{"type":"object","properties":{}}`)
}

// AppendOptions appends the provider options of a tool's configuration as `,"key":value`, sorted by
// key. It omits the keys in own, which the adapter writes itself.
func AppendOptions(dst []byte, t *tenon.Tool, provider string, own ...string) []byte {
	raw, ok := t.Rules.Options[provider]
	if !ok {
		return dst
	}
	var options map[string]json.RawMessage
	if json.Unmarshal(raw, &options) != nil {
		return dst // not reached: the configuration was checked
	}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if slices.Contains(own, key) {
			continue
		}
		dst = append(dst, ',')
		dst = rawjson.AppendString(dst, key)
		dst = append(dst, ':')
		dst = rawjson.AppendRaw(dst, options[key], "null")
	}
	return dst
}

// HasOption reports whether the configuration of the tool sets an option for a provider.
func HasOption(t *tenon.Tool, provider, key string) bool {
	var options map[string]json.RawMessage
	return json.Unmarshal(t.Rules.Options[provider], &options) == nil && options[key] != nil
}

// AppendNumber appends `,"key":value` with the first value that is not nil, if any.
func AppendNumber(dst []byte, key string, values ...*float64) []byte {
	for _, v := range values {
		if v != nil {
			dst = append(dst, `,"`+key+`":`...)
			return strconv.AppendFloat(dst, *v, 'g', -1, 64)
		}
	}
	return dst
}
