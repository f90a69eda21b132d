package elicit

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
)

// Method is the method with which a server requests input from a person.
const Method = "elicitation/create"

// maxRequests bounds the requests of one input_required result.
const maxRequests = 16

// Request is one request of an input_required result (2026-07-28, multi round-trip requests).
type Request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// ParseRequests reads the requests of an input_required result, by their keys. Errors: protocol.
func ParseRequests(raw json.RawMessage) (map[string]Request, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var requests map[string]Request
	if err := exactjson.DecodeOpen(raw, &requests); err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "what the server asks for cannot be read: %w", err)
	}
	if len(requests) > maxRequests {
		return nil, tenon.Errorf(tenon.CodeProtocol, "the server asks for %d things at once; %d is the limit",
			len(requests), maxRequests)
	}
	return requests, nil
}

// ParseForms returns the forms among the requests, by their keys. It skips URLs and other methods. Errors: protocol.
func ParseForms(requests map[string]Request) (map[string]Form, error) {
	forms := map[string]Form{}
	for key, q := range requests {
		if q.Method != Method {
			continue
		}
		f, err := Parse(q.Params)
		if err != nil {
			return nil, err
		}
		if f.Mode == ModeForm {
			forms[key] = f
		}
	}
	return forms, nil
}

// SecretFields returns the names of the fields that seem to ask for a secret, by the keys of their requests. If the
// requests cannot be read, it returns nil, because they cannot be answered, either.
func SecretFields(raw json.RawMessage) map[string][]string {
	requests, err := ParseRequests(raw)
	if err != nil {
		return nil
	}
	forms, err := ParseForms(requests)
	if err != nil {
		return nil
	}
	secrets := map[string][]string{}
	for key, form := range forms {
		for _, f := range form.Fields {
			if f.Secret {
				secrets[key] = append(secrets[key], f.Name)
			}
		}
	}
	return secrets
}

// SensitiveValues returns the values of sensitive fields in an answer. result is the whole answer to the form,
// {"content": …}.
func (f Form) SensitiveValues(result json.RawMessage) []string {
	var r struct {
		Content map[string]json.RawMessage `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return nil
	}
	var values []string
	for _, field := range f.Fields {
		var s string
		if field.Sensitive && json.Unmarshal(r.Content[field.Name], &s) == nil {
			values = append(values, s)
		}
	}
	return values
}
