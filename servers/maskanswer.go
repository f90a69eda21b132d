package servers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// maskAnswer returns v, an answer of the server that is written as JSON, without secrets. what names v in errors. Texts
// and base64 data remain what they are, so that a resource with a secret in it can still be read.
func maskAnswer[T any](s *Server, v T, what string) (out T, err error) {
	if s.veil == nil && s.opts.Mask == nil {
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return out, tenon.Errorf(tenon.CodeInternal, "%s cannot be written as JSON: %w", what, err)
	}
	plain := string(tenon.UnescapedJSON(raw))
	if s.masked(plain) == plain {
		return v, nil
	}
	withheld := tenon.Errorf(tenon.CodeProtocol,
		"%s is withheld: it holds a configured secret where it cannot be masked", what)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return out, withheld
	}
	if raw, err = json.Marshal(s.maskTree(tree)); err != nil {
		return out, withheld
	}
	// Names of members and secrets across several values are left.
	clean, _, ok := s.maskedJSON(raw)
	if !ok || json.Unmarshal(clean, &out) != nil {
		return out, withheld
	}
	return out, nil
}

// maskTree masks secrets in the strings of decoded JSON.
func (s *Server) maskTree(v any) any {
	switch v := v.(type) {
	case string:
		return s.masked(v)
	case []any:
		for i := range v {
			v[i] = s.maskTree(v[i])
		}
	case map[string]any:
		for key, member := range v {
			if text, ok := member.(string); ok && (key == "blob" || key == "data") {
				v[key] = s.maskData(text)
				continue
			}
			v[key] = s.maskTree(member)
		}
	}
	return v
}

// maskData masks secrets in base64 data, which stays base64.
func (s *Server) maskData(text string) string {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return s.masked(text)
	}
	if clean := s.masked(string(data)); clean != string(data) {
		return base64.StdEncoding.EncodeToString([]byte(clean))
	}
	return text
}

// maskError returns err without secrets in its message and data. A question of the server is masked by the surface
// that asks it, because the state in it must return unchanged.
func (s *Server) maskError(err error) error {
	if in := (*mcp.InputError)(nil); err == nil || s.opts.Mask == nil || errors.As(err, &in) {
		return err
	}
	text := err.Error()
	clean := s.masked(text)
	var data json.RawMessage
	var e *tenon.Error
	if errors.As(err, &e) {
		data = json.RawMessage(s.masked(string(e.Data)))
	}
	if clean == text && (e == nil || string(data) == string(e.Data)) {
		return err
	}
	if !json.Valid(data) {
		data = nil
	}
	return &tenon.Error{Code: tenon.ErrorCode(err), Message: clean, Data: data}
}
