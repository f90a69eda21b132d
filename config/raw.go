package config

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
)

// raw reads a value of any form as JSON. Numbers keep their digits, maps their
// order; variables are not expanded.
func (d *decoder) raw(n *node, p place, v reflect.Value) {
	var b bytes.Buffer
	if d.json(&b, n, p) {
		v.SetBytes(b.Bytes())
	}
}

func (d *decoder) json(b *bytes.Buffer, n *node, p place) bool {
	switch n.kind {
	case mapNode:
		b.WriteByte('{')
		for i, k := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, k.val)
			b.WriteByte(':')
			if !d.json(b, n.vals[i], p.key(k.val)) {
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
			if !d.json(b, e, p.at(i)) {
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
			d.add(n, p.path, "not a number that JSON has", "")
			return false
		}
		b.WriteString(strconv.FormatFloat(x, 'g', -1, 64))
	default:
		writeJSON(b, n.val)
	}
	return true
}

func writeJSON(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if e.Encode(s) == nil { // a string always encodes
		b.Truncate(b.Len() - 1)
	}
}
