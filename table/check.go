package table

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Flaw is something that is wrong with a table.
type Flaw struct {
	Row    int64  `json:"row"`
	ID     string `json:"id"`
	Column string `json:"column"`
	Field  string `json:"field"` // of the tool, as seed9 numbers them; several are "7 and 8"
	What   string `json:"what"`
}

// String says where the flaw is and what it is.
func (f Flaw) String() string {
	return fmt.Sprintf("row %d ('%s'), column '%s', field %s: %s", f.Row, f.ID, f.Column, f.Field, f.What)
}

// maxFlaws bounds what a check tells of.
const maxFlaws = 100

// Check reads a whole table and returns what is wrong with its tools, at most 100
// flaws. The error says that it cannot be read at all.
func (r *Reader) Check(ctx context.Context) ([]Flaw, error) {
	var list []Flaw
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return list, err
		}
		for _, c := range r.columns {
			if !c.IsTool() {
				continue
			}
			t, err := row.Tool(c)
			if err != nil {
				return list, err
			}
			if t == nil {
				continue
			}
			for _, f := range t.flaws(r.store) {
				f.Row, f.ID, f.Column = row.Index, row.ID, c.Name
				if list = append(list, f); len(list) >= maxFlaws {
					return list, nil
				}
			}
		}
	}
	return list, nil
}

// flaws looks at one tool.
func (t *Tool) flaws(store *Store) (list []Flaw) {
	add := func(field, format string, args ...any) {
		list = append(list, Flaw{Field: field, What: fmt.Sprintf(format, args...)})
	}
	if t.Name == "" {
		add("1", "the tool has no name")
	}
	var schema map[string]json.RawMessage
	if p := strings.TrimSpace(t.Parameters); p != "" && json.Unmarshal([]byte(p), &schema) != nil {
		add("3", "the parameter schema is not a JSON object")
	} else if _, err := t.Schema(); err != nil {
		add("3", "%s", err)
	}
	switch t.Kind {
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
		if t.Keys != "" && t.Server != "" {
			add("7 and 8", "a workflow tool has file store keys and no server_uri; both are set")
		} else if t.Server != "" {
			add("8", "a workflow tool has no server_uri")
		}
		if t.Message < -1 || int(t.Message) >= max(len(t.Outputs), 1) {
			add("6", "the message index %d is none of %d outputs", t.Message, len(t.Outputs))
		}
		if t.Keys == "" {
			add("7", "a workflow tool needs a file store key")
			break
		}
		names, err := keyNames(t.Keys)
		if err != nil {
			add("7", "%s", err)
		}
		for i, n := range names {
			err := store.whole(n)
			if i == 0 && err == nil {
				_, err = store.Read(n) // the workflow is a file; what follows it may be a folder
			}
			if err != nil {
				add("7", "%s", err)
			}
		}
	}
	return list
}

// whole reads what a name stands for.
func (s *Store) whole(name string) error {
	list, err := s.under(name)
	for _, f := range list {
		if _, err := s.Read(f); err != nil {
			return err
		}
	}
	return err
}
