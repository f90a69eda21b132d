package openai

import (
	"bytes"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// details joins the pieces of reasoning_details (OpenRouter, Vercel). Entries with the same index
// become one entry: its texts are concatenated, and its other members keep their last value. The
// recorded clients send reasoning_details back in this form.
type details struct{ entries []*detail }

type detail struct {
	key    string
	names  []string
	values map[string][]byte
}

// streamed contains the members that arrive in pieces.
var streamed = map[string]bool{"text": true, "summary": true, "data": true}

func (d *details) add(entry []byte) {
	index, typ := rawjson.Field(entry, "index"), rawjson.Field(entry, "type")
	key := string(index) + " " + string(typ)
	var e *detail
	for _, old := range d.entries {
		if old.key == key && index != nil {
			e = old
		}
	}
	if e == nil {
		e = &detail{key: key, values: map[string][]byte{}}
		d.entries = append(d.entries, e)
	}
	for k, v := range rawjson.Fields(entry) {
		name := string(k)
		old, known := e.values[name]
		if !known {
			e.names = append(e.names, name)
		}
		switch {
		case known && rawjson.IsNull(v):
		case known && streamed[name] && rawjson.StringBody(old) != nil && rawjson.StringBody(v) != nil:
			e.values[name] = append(append(old[:len(old)-1], rawjson.StringBody(v)...), '"')
		default:
			e.values[name] = bytes.Clone(v)
		}
	}
}

// raw returns the entries as a JSON array, or nil if there are none.
func (d *details) raw() []byte {
	if len(d.entries) == 0 {
		return nil
	}
	out := []byte{'['}
	for i, e := range d.entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		for j, name := range e.names {
			if j > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, '"'), name...), `":`...)
			out = append(out, e.values[name]...)
		}
		out = append(out, '}')
	}
	return append(out, ']')
}
