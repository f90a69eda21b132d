package config

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// truth returns the value of a boolean.
func truth(s string) bool { return strings.EqualFold(s, "true") }

// json returns a value as JSON. Numbers keep their digits, keys their order.
func (n *node) json() []byte {
	var b, nice bytes.Buffer
	n.writeJSON(&b, "", &sink{}, nil)
	if json.Indent(&nice, b.Bytes(), "", "  ") != nil {
		return b.Bytes() // never: it was just made
	}
	return append(nice.Bytes(), '\n')
}

// writeJSON appends a value as JSON. path is its path in messages, and text returns the value of a text; nil: as it is
// written. The result is false if there is an error, which s then has.
func (n *node) writeJSON(b *bytes.Buffer, path string, s *sink, text func(n *node, path string) string) bool {
	switch n.kind {
	case mapNode:
		b.WriteByte('{')
		for i, k := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, k.val)
			b.WriteByte(':')
			if !n.vals[i].writeJSON(b, join(path, k.val), s, text) {
				return false
			}
		}
		b.WriteByte('}')
		return true
	case listNode:
		b.WriteByte('[')
		for i, e := range n.vals {
			if i > 0 {
				b.WriteByte(',')
			}
			if !e.writeJSON(b, index(path, i), s, text) {
				return false
			}
		}
		b.WriteByte(']')
		return true
	}
	switch n.tag {
	case badTag: // reported already
		return false
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strconv.FormatBool(truth(n.val)))
	case "!!int", "!!float":
		if json.Valid([]byte(n.val)) {
			b.WriteString(n.val)
			return true
		}
		if i, err := strconv.ParseInt(n.val, 0, 64); err == nil {
			b.WriteString(strconv.FormatInt(i, 10))
			return true
		}
		x, err := strconv.ParseFloat(n.val, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			s.add(n, path, "not a number that JSON has", "")
			return false
		}
		b.WriteString(strconv.FormatFloat(x, 'g', -1, 64))
	default:
		val := n.val
		if text != nil {
			val = text(n, path)
		}
		writeString(b, val)
	}
	return true
}

// writeString appends a text as JSON.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil { // a string always encodes
		b.Truncate(b.Len() - 1)
	}
}
