package model

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/tenonhq/tenon"
)

// Body is a request body in pieces. The pieces are shared (a message's encoded
// form is the same slice on every turn), so a body must not be written to, and
// making one costs the number of its pieces and not its bytes.
type Body struct {
	parts [][]byte
	size  int64
}

// Add appends a piece, which the body keeps.
func (b *Body) Add(p []byte) {
	if len(p) > 0 {
		b.parts = append(b.parts, p)
		b.size += int64(len(p))
	}
}

// Grow makes room for n pieces.
func (b *Body) Grow(n int) {
	if cap(b.parts)-len(b.parts) < n {
		b.parts = append(make([][]byte, 0, len(b.parts)+n), b.parts...)
	}
}

// Len returns the number of bytes.
func (b *Body) Len() int64 { return b.size }

// Bytes returns the body in one piece.
func (b *Body) Bytes() []byte {
	out := make([]byte, 0, b.size)
	for _, p := range b.parts {
		out = append(out, p...)
	}
	return out
}

// Reader returns a new reader over the body; each attempt of a request takes
// its own.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{parts: b.parts} }

type bodyReader struct {
	parts [][]byte
	off   int // in parts[0]
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.parts) > 0 {
		c := copy(p[n:], r.parts[0][r.off:])
		n += c
		if r.off += c; r.off == len(r.parts[0]) {
			r.parts, r.off = r.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close does nothing; the pieces belong to the body.
func (r *bodyReader) Close() error { return nil }

// EncodedMessages adds the wire form of every message to the body. Each form
// starts with a comma (so that the shared bytes need no separator piece), which
// is left out before the first; a message that has no form adds nothing.
func (b *Body) EncodedMessages(key string, msgs []*tenon.Message, first bool,
	encode func(*tenon.Message) ([]byte, error)) error {
	b.Grow(len(msgs) + 2)
	for _, m := range msgs {
		p, err := m.Encoded(key, encode)
		if err != nil {
			return err
		}
		if first && len(p) > 0 {
			p, first = p[1:], false
		}
		b.Add(p)
	}
	return nil
}

// ToolCache remembers the wire form of the last few tool lists. A run asks with
// the same list on every turn; lists are recognised by the slice itself, which
// nobody changes once it is in a request. The zero value is ready, and safe for
// concurrent use.
type ToolCache struct {
	mu   sync.Mutex
	ring [4]struct {
		tools []tenon.Tool
		wire  []byte
	}
	next int
}

// Get returns encode(tools), remembered.
func (c *ToolCache) Get(tools []tenon.Tool, encode func([]tenon.Tool) []byte) []byte {
	if len(tools) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ring {
		// The entry keeps the array alive, so an equal address is the same array.
		if len(e.tools) == len(tools) && &e.tools[0] == &tools[0] {
			return e.wire
		}
	}
	wire := encode(tools)
	c.ring[c.next].tools, c.ring[c.next].wire = tools, wire
	c.next = (c.next + 1) % len(c.ring)
	return wire
}

// Schema appends a tool's input schema as it is, compacted; a tool without one
// takes any object.
func Schema(dst []byte, schema json.RawMessage) []byte {
	return AppendRaw(dst, schema, `{"type":"object","properties":{}}`)
}
