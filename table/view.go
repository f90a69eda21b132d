package table

import (
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
)

// Shown is a column of a view for people. It may show a part of a cell.
type Shown struct {
	tenon.TableColumn
	// Of is the name of the table column that it shows.
	Of string
}

// View returns the columns of a view for people, and a function that returns the texts of a row. A nil text is a
// missing cell. For a tool, the view has columns for the main fields, and for a message the role and the text. All
// other cells are shown whole. The JSON of tools and messages is not shown, because in a narrow column only its
// beginning would be visible, which is the same in all rows.
func (r *Reader) View() (columns []Shown, texts func(Cells) ([]*string, error)) {
	var parts []func(Cells) ([]*string, error)
	for _, col := range r.columns {
		names, read := r.viewOf(col)
		if names == nil {
			columns = append(columns, Shown{tenon.TableColumn{Name: col.Name, Type: col.shownType()}, col.Name})
		}
		for _, name := range names {
			columns = append(columns, Shown{tenon.TableColumn{Name: name, Type: "string"}, col.Name})
		}
		parts = append(parts, read)
	}
	return columns, func(row Cells) ([]*string, error) {
		out := make([]*string, 0, len(columns))
		for _, read := range parts {
			cells, err := read(row)
			if err != nil {
				return nil, err
			}
			out = append(out, cells...)
		}
		return out, nil
	}
}

// viewOf returns the parts of a cell that the view shows. If names is nil, the view shows the whole
// cell.
func (r *Reader) viewOf(col Column) (names []string, read func(Cells) ([]*string, error)) {
	switch {
	case col.IsTool() && r.Single():
		names = []string{"kind", "name", "server", "description"}
		return names, func(row Cells) ([]*string, error) {
			t, err := row.shownTool(col)
			if err != nil || t == nil {
				return make([]*string, len(names)), err
			}
			kind, server := strings.ToLower(t.Kind.String()), t.Server
			if t.Credential != "" {
				server += " (with the secret " + t.Credential + ")"
			}
			return []*string{&kind, &t.Name, &server, &t.Description}, nil
		}
	case col.IsMessage() && r.messageColumns() == 1:
		names = []string{"role", "text"}
		return names, func(row Cells) ([]*string, error) {
			v, err := row.Value(col, false)
			if err != nil || string(v) == "null" {
				return make([]*string, len(names)), err
			}
			var m messageCell
			role, text := "", string(v)
			if json.Unmarshal(v, &m) == nil { // otherwise the message is stored in an unknown form
				role, text = m.summary()
			}
			return []*string{&role, &text}, nil
		}
	}
	return nil, func(row Cells) ([]*string, error) {
		v, err := row.Value(col, false)
		if err != nil || string(v) == "null" {
			return []*string{nil}, err
		}
		text := string(v)
		if v[0] == '"' {
			if err := json.Unmarshal(v, &text); err != nil {
				return nil, invalid("%s: row %d, column '%s': %w", r.name, row.Index, col.Name, err)
			}
		}
		return []*string{&text}, nil
	}
}

// shownType returns the type of a column whose cells are shown whole.
func (c Column) shownType() string {
	switch {
	case c.IsTool():
		return "tool"
	case c.IsMessage():
		return "message"
	}
	return c.PlainType()
}

func (r *Reader) messageColumns() (n int) {
	for _, c := range r.columns {
		if c.IsMessage() {
			n++
		}
	}
	return n
}

// summary returns the role and the text of a message.
func (m *messageCell) summary() (role, text string) {
	role = strings.ToLower(m.Role)
	if m.Name != "" {
		role += " " + m.Name // the tool that returned the result
	}
	var lines []string
	for _, p := range m.Content {
		if p.Type == "text" {
			lines = append(lines, p.Text)
		} else {
			lines = append(lines, "["+p.Type+"]")
		}
	}
	for _, c := range m.Calls {
		lines = append(lines, "→ "+c.Name+" "+string(c.Arguments))
	}
	return role, strings.Join(lines, "\n")
}
