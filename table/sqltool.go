package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// In SQL a tool is the JSON that tenon tables show prints. A result column that shows a tool column unchanged is a tool
// column again: each text is decoded, and the files of its tool are copied.

// shownTool is the form in which [Tool.MarshalJSON] encodes a tool.
type shownTool struct {
	Kind        string          `json:"tool_type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameter_schema"`
	Inputs      []Port          `json:"input_spec"`
	Outputs     []Port          `json:"output_spec"`
	Message     *int32          `json:"message_output_port_index"`
	Keys        string          `json:"workflow_filestore"`
	Server      string          `json:"server_uri"`
	Remote      string          `json:"tool_name"`
	Credential  string          `json:"credential"`
}

// UnmarshalJSON decodes a tool from the form of [Tool.MarshalJSON]. Parameters keep their bytes.
func (t *Tool) UnmarshalJSON(raw []byte) error {
	var s shownTool
	if err := json.Unmarshal(raw, &s); err != nil {
		return invalid("not a tool: %w", err)
	}
	kind, err := ParseKind(s.Kind)
	if err != nil {
		return err
	}
	*t = Tool{Kind: kind, Name: s.Name, Description: s.Description, Parameters: string(s.Parameters),
		Inputs: s.Inputs, Outputs: s.Outputs, Message: -1, Keys: s.Keys}
	var text string
	if json.Unmarshal(s.Parameters, &text) == nil && !json.Valid([]byte(text)) {
		t.Parameters = text // it was not JSON, so it is shown as a string
	}
	if s.Message != nil {
		t.Message = *s.Message
	}
	t.readURI(s.Server)
	t.Remote = cmp.Or(s.Remote, t.Remote)
	t.Credential = s.Credential
	return nil
}

// ParseKind parses the text of [Kind.String] in any case.
func ParseKind(s string) (Kind, error) {
	for k, name := range kindNames {
		if strings.EqualFold(name, s) {
			return k, nil
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, invalid("'%s' is not the kind of a tool: workflow, mcp, http, prompt, agent, or a number",
			tenon.Visible(s))
	}
	return Kind(n), nil
}

// sqlText returns the tool as JSON with the bytes of its parameters, which MarshalJSON compacts.
func (t *Tool) sqlText() ([]byte, error) {
	params := strings.TrimSpace(t.Parameters)
	if params == "" || !json.Valid([]byte(params)) {
		return t.MarshalJSON()
	}
	short := *t
	short.Parameters = "{}"
	b, err := short.MarshalJSON()
	// In a JSON string the quotes would be escaped, so the first match is the key.
	return bytes.Replace(b, []byte(`"parameter_schema":{}`), []byte(`"parameter_schema":`+params), 1), err
}

// appendToolText appends a tool that a query returns to a tool column in the layout of the column.
func (c *sourceColumn) appendToolText(b *array.StructBuilder, v value) error {
	if v.kind != sqlite3.SQLITE_TEXT {
		return errOther
	}
	var t Tool
	if err := t.UnmarshalJSON(v.bytes); err != nil {
		return errOther
	}
	if err := appendTool(b, c.column.own(), &t); err != nil {
		return fmt.Errorf("tool '%s': %w", tenon.Visible(t.Name), err)
	}
	return nil
}

// keepFiles copies the files of a tool that a query returns. Under UNION, any of the tables can have them.
func (r *resultWriter) keepFiles(v value) error {
	var t Tool
	if v.kind != sqlite3.SQLITE_TEXT || t.UnmarshalJSON(v.bytes) != nil || t.Keys == "" {
		return nil
	}
	if !r.w.keeps() {
		r.lost.count++
		return nil
	}
	var last error
	for _, s := range r.sources {
		if !slices.ContainsFunc(s.columns, func(c *sourceColumn) bool { return c.used && c.column.IsTool() }) {
			continue
		}
		err := r.w.keep.add(r.ctx, s.reader.store, t.Keys)
		switch tenon.ErrorCode(err) {
		case "":
			return nil
		case tenon.CodeNotFound, tenon.CodeInvalid:
			last = err
		default:
			return err
		}
	}
	r.lost.count++ // calling the tool will report the error
	if r.lost.first == nil {
		r.lost.first = last
	}
	return nil
}
