package table

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// TestView checks the views: role and text for messages, next to the column of errors; the main
// fields for a table of tools; whole cells for tools next to other columns.
func TestView(t *testing.T) {
	dir := t.TempDir()
	talk := filepath.Join(dir, "c.arrow")
	said := []*tenon.Message{
		{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "Look"}, {Type: tenon.PartImage, MimeType: "image/png", Data: "iVBORw0KGgo="}}},
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "I do."},
			{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c", Name: "add", Arguments: json.RawMessage(`{"n":9007199254740993}`)}}}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "c", Name: "add", Content: []tenon.Content{tenon.Text("42")}}}}},
	}
	if err := WriteConversation(t.Context(), talk, said, Failure{Column: "Errors", Text: "it broke"}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(dir, "two.arrow")
	twoColumns(t, two, &add, &noPorts)
	for name, tt := range map[string]struct {
		path  string
		names []string
		rows  [][]string
	}{
		"a conversation": {talk, []string{"role", "text", "Errors"}, [][]string{{"user", "Look\n[png]", "-"},
			{"ai", "I do.\n→ add {\"n\":9007199254740993}", "-"}, {"tool add", "42", "-"}, {"-", "-", "it broke"}}},
		"tools alone": {write(t, "t.arrow", WriteOptions{}, &add, nil), []string{"kind", "name", "server", "description"},
			[][]string{{"mcp", "add", "http://127.0.0.1:8080/mcp", "Add two numbers"}, {"-", "-", "-", "-"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, tt.path)
			columns, texts := r.View()
			var names []string
			for _, c := range columns {
				names = append(names, c.Name)
			}
			var rows [][]string
			for row, err := range r.Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				cells, err := texts(row)
				if err != nil {
					t.Fatal(err)
				}
				var line []string
				for _, c := range cells {
					if c == nil {
						line = append(line, "-")
					} else {
						line = append(line, *c)
					}
				}
				rows = append(rows, line)
			}
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.rows, rows); diff != "" {
				t.Error(diff)
			}
		})
	}
	columns, _ := read(t, two).View()
	if len(columns) != 3 || columns[0].Name != "First" || columns[0].Type != "tool" {
		t.Errorf("columns of tools beside others: %+v", columns)
	}
}
