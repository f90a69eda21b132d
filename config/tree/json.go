package tree

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Truth returns the value of a boolean.
func Truth(s string) bool { return strings.EqualFold(s, "true") }

// JSON returns a value as JSON. Numbers keep their digits, and keys keep their order.
func (n *Node) JSON() []byte {
	var b, nice bytes.Buffer
	n.WriteJSON(&b, "", &Sink{}, nil)
	if json.Indent(&nice, b.Bytes(), "", "  ") != nil {
		return b.Bytes() // never: it was just made
	}
	return append(nice.Bytes(), '\n')
}

// WriteJSON appends a value as JSON. path is its path in messages. text returns the value of a text; if nil, texts are
// written as they are. WriteJSON returns false if there is an error, which it adds to s.
func (n *Node) WriteJSON(b *bytes.Buffer, path string, s *Sink, text func(n *Node, path string) string) bool {
	switch n.Kind {
	case Map:
		b.WriteByte('{')
		for i, k := range n.Keys {
			if i > 0 {
				b.WriteByte(',')
			}
			WriteString(b, k.Val)
			b.WriteByte(':')
			if !n.Vals[i].WriteJSON(b, Join(path, k.Val), s, text) {
				return false
			}
		}
		b.WriteByte('}')
		return true
	case List:
		b.WriteByte('[')
		for i, e := range n.Vals {
			if i > 0 {
				b.WriteByte(',')
			}
			if !e.WriteJSON(b, Index(path, i), s, text) {
				return false
			}
		}
		b.WriteByte(']')
		return true
	}
	switch n.Tag {
	case BadTag: // the tag was already reported
		return false
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strconv.FormatBool(Truth(n.Val)))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Val)) {
			b.WriteString(n.Val)
			return true
		}
		if i, err := strconv.ParseInt(n.Val, 0, 64); err == nil {
			b.WriteString(strconv.FormatInt(i, 10))
			return true
		}
		x, err := strconv.ParseFloat(n.Val, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			s.Add(n, path, "not a number that JSON has", "")
			return false
		}
		b.WriteString(strconv.FormatFloat(x, 'g', -1, 64))
	default:
		val := n.Val
		if text != nil {
			val = text(n, path)
		}
		WriteString(b, val)
	}
	return true
}

// WriteString appends a text as JSON.
func WriteString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil { // a string always encodes
		b.Truncate(b.Len() - 1)
	}
}

// SameJSON reports whether two values are the same as JSON, with keys in the same order.
func SameJSON(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.JSON(), b.JSON())
}
