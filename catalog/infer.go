package catalog

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tenonhq/tenon"
)

// Infer returns the JSON Schema of a Go type. It takes the exported fields with their json tags; the tag jsonschema
// is the description. Fields without omitempty are required. The schema of a type without fields allows no arguments.
// Errors have code invalid, and name the part of the type that JSON cannot represent.
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
