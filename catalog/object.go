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

// parseObject reads an object. It returns false for all other JSON values. The values of the object share memory with
// raw.
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

// decodeObject is like parseObject, but other data may follow the object.
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

// set returns the object with a new value for a key. A new key is added at the end.
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

// first returns the object with a new member at its beginning. The object must not have the key yet.
func (o object) first(key string, v json.RawMessage) object {
	return append(object{{key, v}}, o...)
}

// without returns the object without some keys.
func (o object) without(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(keys, m.key) })
}

// raw returns the object as compact JSON.
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

// encode returns a string, a number, or a list of them as JSON, without the escapes that only HTML needs.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null") // unreachable: strings, numbers and lists can always be encoded
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
