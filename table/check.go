package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Flaw is a defect of a tool in a table.
type Flaw struct {
	Row    int64  `json:"row"`
	ID     string `json:"id"`
	Column string `json:"column"`
	// Field is the field of the tool in the numbering of seed9, or two of them: "7 and 8". It is empty if the cell
	// is corrupt.
	Field string `json:"field"`
	What  string `json:"what"`
}

// String formats the flaw with its position.
func (f Flaw) String() string {
	field := ""
	if f.Field != "" {
		field = ", field " + f.Field
	}
	return fmt.Sprintf("row %d ('%s'), column '%s'%s: %s", f.Row, f.ID, f.Column, field, f.What)
}

// MaxFlaws bounds the flaws that [Reader.Check] returns.
const MaxFlaws = 10_000

// Checks are further checks of tools. Each may be nil.
type Checks struct {
	// Tool checks a tool without flaws. It returns the flaw of its server_uri, or "".
	Tool func(t *Tool) string
	// Packed checks a workflow tool. It returns flaws with Field and What. pack is the packed workflow, of at most 8
	// MiB; larger ones are not passed.
	Packed func(t *Tool, pack []byte) []Flaw
}

// Check reads the rest of a table and returns the flaws of its row ids and of its tools, at most [MaxFlaws]. If the
// table cannot be read to its end, it returns the flaws so far with the error.
func (r *Reader) Check(ctx context.Context) ([]Flaw, error) { return r.CheckWith(ctx, Checks{}) }

// CheckWith is [Reader.Check] with further checks.
func (r *Reader) CheckWith(ctx context.Context, more Checks) ([]Flaw, error) {
	var list []Flaw
	ids := newRowIDs()
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return list, err
		}
		if !ids.add(row.ID) {
			list = append(list, Flaw{Row: row.Index, ID: row.ID, Column: RowID,
				What: "an earlier row has this id; row ids must be unique"})
			if len(list) >= MaxFlaws {
				return list, nil
			}
		}
		for _, c := range r.columns {
			if !c.IsTool() {
				continue
			}
			for _, f := range row.flaws(c, r.store, more) {
				f.Row, f.ID, f.Column = row.Index, row.ID, c.Name
				if list = append(list, f); len(list) >= MaxFlaws {
					return list, nil
				}
			}
		}
	}
	return list, nil
}

// flaws checks one cell.
func (c Cells) flaws(col Column, store *Store, more Checks) []Flaw {
	t, err := c.Tool(col)
	var field *fieldError
	switch {
	case errors.As(err, &field):
		return []Flaw{{Field: strconv.Itoa(field.field), What: field.err.Error()}}
	case err != nil:
		return []Flaw{{What: err.Error()}}
	case t == nil:
		return nil
	}
	list := t.flaws(store, more.Packed)
	if len(list) == 0 && more.Tool != nil {
		if what := more.Tool(t); what != "" {
			list = []Flaw{{Field: "8", What: what}}
		}
	}
	return list
}

// flaws checks one tool.
func (t *Tool) flaws(store *Store, packed func(*Tool, []byte) []Flaw) (list []Flaw) {
	add := func(field, format string, args ...any) {
		list = append(list, Flaw{Field: field, What: fmt.Sprintf(format, args...)})
	}
	if !t.isNamed() {
		add("1", "the tool has no name")
	}
	var schema map[string]json.RawMessage
	if p := strings.TrimSpace(t.Parameters); p != "" && json.Unmarshal([]byte(p), &schema) != nil {
		add("3", "the parameter schema is not a JSON object")
	} else if schema, err := t.Schema(); err != nil {
		add("3", "%s", err)
	} else if what := schemaFlaw(schema); what != "" {
		add("3", "%s", what)
	}
	switch t.Kind {
	default:
		add("0", "Unknown tool type index: %d", t.Kind)
	case MCP, HTTP, Prompt, Agent:
		a := "an " + t.Kind.String()
		if t.Kind == Prompt {
			a = "a " + t.Kind.String()
		}
		if t.Keys != "" && t.Server != "" {
			add("7 and 8", "%s tool has a server_uri and no file store keys; both are set", a)
		} else if t.Keys != "" {
			add("7", "%s tool has no file store keys", a)
		}
		if len(t.Inputs) > 0 {
			add("4", "%s tool has no input ports", a)
		}
		if len(t.Outputs) > 0 {
			add("5", "%s tool has no output ports", a)
		}
		if t.Message != -1 {
			add("6", "the message index of %s tool is -1, not %d", a, t.Message)
		}
		if t.Server == "" {
			add("8", "%s tool needs a server_uri", a)
		} else if _, err := t.Address(); err != nil {
			add("8", "%s", err)
		}
	case Workflow:
		list = append(list, t.workflowFlaws(store, packed)...)
	}
	return list
}

// maxChecked bounds the packed workflows that are passed to the check of [Reader.CheckWith].
const maxChecked = 8 << 20

// capped collects what is written, up to maxChecked bytes.
type capped struct {
	bytes.Buffer
	over bool
}

func (c *capped) Write(b []byte) (int, error) {
	if c.over = c.over || c.Len()+len(b) > maxChecked; !c.over {
		_, _ = c.Buffer.Write(b) // never fails
	}
	return len(b), nil
}

// workflowFlaws checks the fields of a workflow tool.
func (t *Tool) workflowFlaws(store *Store, packed func(*Tool, []byte) []Flaw) (list []Flaw) {
	add := func(field, format string, args ...any) {
		list = append(list, Flaw{Field: field, What: fmt.Sprintf(format, args...)})
	}
	if t.Keys != "" && t.Server != "" {
		add("7 and 8", "a workflow tool has file store keys and no server_uri; both are set")
	} else if t.Server != "" {
		add("8", "a workflow tool has no server_uri")
	}
	if t.Message < -1 || int(t.Message) >= max(len(t.Outputs), 1) {
		add("6", "the message index %d is not one of the %d outputs", t.Message, len(t.Outputs))
	}
	if t.Keys == "" {
		add("7", "a workflow tool needs a file store key")
		return list
	}
	names, err := keyNames(t.Keys)
	if err != nil {
		add("7", "%s", err)
	}
	for i, n := range names {
		err := store.whole(n)
		if i == 0 && err == nil {
			// The first name is the workflow, which must be a file. The other names may be folders.
			pack := capped{over: packed == nil}
			if _, err = store.copyTo(&pack, n); err == nil && !pack.over {
				list = append(list, packed(t, pack.Bytes())...)
			}
		}
		if err != nil {
			add("7", "%s", err)
		}
	}
	return list
}

// whole reads all files of a key's name and returns the first error.
func (s *Store) whole(name string) error {
	list, err := s.under(name)
	for _, f := range list {
		if _, err := s.copyTo(io.Discard, f); err != nil {
			return err
		}
	}
	return err
}

// schemaTypes are the types of JSON Schema.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// schemaFlaw returns the first defect of an object schema and of its properties, or "". It checks the keywords that
// every reader of a tool table needs: type, properties and required.
func schemaFlaw(raw json.RawMessage) string {
	var schema struct {
		Type       json.RawMessage `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   json.RawMessage `json:"required"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return "the parameter schema is not a JSON object"
	}
	if types := typesOf(schema.Type); schema.Type != nil && !slices.Contains(types, "object") {
		return "the parameter schema has type " + tenon.Visible(string(schema.Type)) + "; it must be object"
	}
	var properties map[string]json.RawMessage
	if schema.Properties != nil && json.Unmarshal(schema.Properties, &properties) != nil {
		return "the parameter schema has properties that are not an object"
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		var property struct {
			Type json.RawMessage `json:"type"`
		}
		raw := strings.TrimSpace(string(properties[name]))
		if raw == "true" || raw == "false" {
			continue
		}
		if json.Unmarshal([]byte(raw), &property) != nil {
			return "parameter '" + tenon.Visible(name) + "' has no schema but " + tenon.Visible(raw[:min(len(raw), 60)])
		}
		if property.Type != nil && typesOf(property.Type) == nil {
			return "parameter '" + tenon.Visible(name) + "' has type " + tenon.Visible(string(property.Type)) +
				"; types are " + strings.Join(schemaTypes, ", ")
		}
	}
	var required []string
	if schema.Required != nil && json.Unmarshal(schema.Required, &required) != nil {
		return "the parameter schema has a 'required' that is not a list of names"
	}
	return ""
}

// typesOf returns the types of a type keyword, or nil if it is not valid.
func typesOf(raw json.RawMessage) []string {
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, t := range list {
		if !slices.Contains(schemaTypes, t) {
			return nil
		}
	}
	return list
}
