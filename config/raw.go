package config

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// raw reads a value of any form as JSON. Numbers keep their digits, maps their
// order; variables are expanded only in the texts of [expandsJSON].
func (d *decoder) raw(n *node, p place, v reflect.Value) {
	if d.typed {
		d.typedRaw(n, p, v)
		return
	}
	var b bytes.Buffer
	text := asWritten
	if expandsJSON[p.pattern] {
		text = d.settingText
	}
	if d.json(&b, n, p, text) {
		v.SetBytes(b.Bytes())
	}
}

// asWritten returns a text without expanding its variables.
func asWritten(n *node, _ place) string { return n.val }

// settingText expands the variables of a text in the settings of a server, and records its secrets.
func (d *decoder) settingText(n *node, p place) string {
	if d.off {
		return n.val
	}
	if len(secretsIn(n.val)) > 0 {
		d.late[p.path] = n
	}
	return d.varsOf(n).expand(n.val, n, p.path, d.expansions())
}

// settings returns the settings of a server as JSON, with the secrets in their texts.
func (f *filler) settings(path string, all map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(all))
	d := &decoder{sink: &sink{}, vars: f.c.vars}
	for key, raw := range all {
		out[key] = raw
		n, p := f.c.nodes[path+"."+key], place{path: path + "." + key}
		if n == nil || !f.hasSecret(p.path) {
			continue
		}
		var b bytes.Buffer
		if d.json(&b, n, p, func(n *node, p place) string {
			return f.text(p.path, d.varsOf(n).expand(n.val, n, p.path, d.sink))
		}) {
			out[key] = b.Bytes()
		}
	}
	return out
}

// hasSecret reports whether a text at a path or below it contains a secret.
func (f *filler) hasSecret(path string) bool {
	for at := range f.c.late {
		if rest, ok := strings.CutPrefix(at, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// json appends a value as JSON. text returns the value of a text.
func (d *decoder) json(b *bytes.Buffer, n *node, p place, text func(*node, place) string) bool {
	switch n.kind {
	case mapNode:
		b.WriteByte('{')
		for i, k := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, k.val)
			b.WriteByte(':')
			if !d.json(b, n.vals[i], p.key(k.val), text) {
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
			if !d.json(b, e, p.at(i), text) {
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
		writeJSON(b, text(n, p))
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
