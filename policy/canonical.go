package policy

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Canonical returns JSON in a canonical form, which is the same for equal values: keys sorted, no white space,
// strings escaped in one way. Numbers stay as written, so that no digit is lost. Errors: invalid (raw is not one JSON
// value).
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	if b, ok := rawjson.AppendSorted(make([]byte, 0, len(raw)), raw, noSet); ok {
		return b, nil
	}
	v, err := Decoded(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func noSet([]byte) bool { return false } // the order of elements counts

// Decoded reads one JSON value. Numbers stay as they are written. The encoded result is canonical (see [Canonical]).
// Errors: invalid.
func Decoded(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return v, nil
		}
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "not one JSON value: %w", err)
}
