package catalog

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tenonhq/tenon"
)

// Infer returns the JSON Schema of a Go type: exported fields by their json tags, a tag
// jsonschema as description; fields without omitempty are required. A type without
// fields takes none. The error, of code invalid, says what has no form in JSON.
func Infer(t reflect.Type) (json.RawMessage, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s has no JSON Schema: %w", t, err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the schema of %s cannot be written: %w", t, err)
	}
	return raw, nil
}
