package policy

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/tenonhq/tenon"
)

// Canonical returns JSON in a form that is the same for values that are equal: keys
// sorted, no white space, strings escaped in one way. Numbers stay as they are
// written, so that none loses a digit. Errors: invalid (it is not one JSON value).
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return json.Marshal(v)
		}
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "not one JSON value: %w", err)
}
