package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// raw decodes a value of any form as JSON. Numbers keep their digits, and maps their order. Variables are expanded
// only in the texts of [expandsJSON].
func (d *decoder) raw(n *tree.Node, p place, v reflect.Value) {
	if d.typed {
		d.typedRaw(n, p, v)
		return
	}
	var b bytes.Buffer
	text := d.settingText
	if !expandsJSON[p.pattern] {
		text = nil
	}
	if n.WriteJSON(&b, p.path, d.Sink, text) {
		v.SetBytes(b.Bytes())
	}
}

// settingText expands the variables of a text in the settings of a server, and records its secrets.
func (d *decoder) settingText(n *tree.Node, path string) string {
	if d.off {
		return n.Val
	}
	if len(secretsIn(n.Val)) > 0 {
		d.late[path] = n
	}
	return d.varsOf(n).Expand(n.Val, n, path, d.expansions())
}

// settings returns the settings of a server as JSON, with the secrets in their texts.
func (f *filler) settings(path string, all map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(all))
	d := &decoder{Sink: &tree.Sink{}, vars: f.c.vars}
	for key, raw := range all {
		out[key] = raw
		n, p := f.c.nodes[path+"."+key], path+"."+key
		if n == nil || !f.hasSecret(p) {
			continue
		}
		var b bytes.Buffer
		if n.WriteJSON(&b, p, d.Sink, func(n *tree.Node, path string) string {
			return f.text(path, d.varsOf(n).Expand(n.Val, n, path, d.Sink))
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
