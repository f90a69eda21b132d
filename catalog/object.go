package catalog

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// object is a JSON object whose members keep their order and their bytes. A change of one key of a schema therefore
// leaves the rest unchanged. The methods return copies.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseObject reads an object. It returns false for any other JSON value. The values are
// parts of raw.
func parseObject(raw json.RawMessage) (object, bool) {
	if !json.Valid(raw) {
		return decodeObject(raw)
	}
	if raw = bytes.TrimLeft(raw, " \t\r\n"); raw[0] != '{' {
		return nil, false
	}
	o := object{}
	for key, v := range rawjson.Members(raw) {
		o = append(o, member{string(key), v[:len(v):len(v)]})
	}
	return o, true
}

// decodeObject is parseObject for a value that may be followed by other data.
func decodeObject(raw json.RawMessage) (object, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	o := object{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		o = append(o, member{key, v})
	}
	return o, true
}

// get returns the value of a key, or nil if the key is absent.
func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o object) has(key string) bool { return o.get(key) != nil }

// set returns the object with a key's value changed, or added at the end.
func (o object) set(key string, v json.RawMessage) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].key == key {
			o[i].value = v
			return o
		}
	}
	return append(o, member{key, v})
}

// first returns the object with a member at its beginning that it did not have.
func (o object) first(key string, v json.RawMessage) object {
	return append(object{{key, v}}, o...)
}

// without returns the object without some keys.
func (o object) without(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(keys, m.key) })
}

// raw writes the object, compact.
func (o object) raw() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendString(b, m.key), ':'), m.value...)
	}
	return append(b, '}')
}

func (o object) keys() []string {
	var keys []string
	for _, m := range o {
		keys = append(keys, m.key)
	}
	return keys
}

// encode writes a string, number or list of those as JSON, without the escapes
// that only HTML needs.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null") // strings, numbers and lists always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// texts reads the strings of a list. It skips other values.
func texts(raw json.RawMessage) []string {
	var list []any
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
