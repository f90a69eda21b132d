package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Kind is the number that tells kinds of tools apart, field 0 of a tool. Numbers
// from 100 on are for kinds that KNIME does not have.
type Kind int64

// The kinds that KNIME has, and those that tenon adds: a request over HTTP, a template
// that a model answers, an agent of the configuration. What a tool of these is stands
// in its server_uri; see [Address].
const (
	Workflow Kind = 0
	MCP      Kind = 1
	HTTP     Kind = 100
	Prompt   Kind = 101
	Agent    Kind = 102
)

var kindNames = map[Kind]string{Workflow: "WORKFLOW", MCP: "MCP", HTTP: "HTTP", Prompt: "PROMPT", Agent: "AGENT"}

// String returns the name of the kind, or its number.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return strconv.FormatInt(int64(k), 10)
}

// IsKnown reports whether tools of the kind can be used.
func (k Kind) IsKnown() bool { return kindNames[k] != "" }

// IsOwn reports whether the kind is one of tenon's, which KNIME cannot run.
func (k Kind) IsOwn() bool { return k.IsKnown() && k >= HTTP }

// Port is a table that a workflow tool takes or gives.
type Port struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"` // Table
	// Spec is JSON that describes the table's columns; "": nothing is said.
	Spec string `json:"spec,omitempty"`
}

// Tool is one cell of a tool column.
type Tool struct {
	Kind        Kind
	Name        string
	Description string
	// Parameters is JSON as the table has it: the schema of an object for an MCP
	// tool, a map of names to properties for a workflow tool. See [Tool.Schema].
	Parameters string
	Inputs     []Port
	Outputs    []Port
	// Message is the output that is the text for the model; -1: there is none.
	Message int32
	// Keys are the file store keys, joined by semicolons: the packed workflow, then
	// its data.
	Keys string
	// Server is the address of an MCP tool's server, without what [Tool.URI] adds; of a kind
	// of tenon's what the tool is.
	Server string
	// Remote is the tool's name on the server.
	Remote string
	// Credential names a secret of the configuration; never its value.
	Credential string

	nulls uint16 // fields that stand as null in the table, by their bit
}

// Use returns an error for a kind that cannot be used. Row says where the tool
// stands, as messages name it.
func (t *Tool) Use(row string) error {
	if t.Kind.IsKnown() {
		return nil
	}
	return invalid("Unknown tool type index: %d (%s, tool '%s'); the row can be copied, and used by a tenon that knows this kind", t.Kind, row, tenon.Visible(t.Name))
}

// Schema returns the JSON Schema of the tool's parameters, of an object. Names of a
// workflow tool are all required. Absent parameters are an object without any.
func (t *Tool) Schema() (json.RawMessage, error) {
	raw := []byte(strings.TrimSpace(t.Parameters))
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, invalid("the parameter schema of tool '%s' is not a JSON object: %w", tenon.Visible(t.Name), err)
	}
	if t.Kind != Workflow {
		if len(m) == 0 {
			return json.RawMessage(`{"type":"object","properties":{}}`), nil
		}
		return raw, nil
	}
	names, err := keys(raw)
	if err != nil {
		return nil, invalid("the parameter schema of tool '%s': %w", tenon.Visible(t.Name), err)
	}
	required, err := json.Marshal(names)
	if err != nil {
		return nil, invalid("the parameter schema of tool '%s': %w", tenon.Visible(t.Name), err)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":%s,"required":%s}`, raw, required), nil
}

// keys returns the keys of a JSON object in their order; one that stands twice is
// an error.
func keys(raw []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	list, seen := []string{}, map[string]bool{}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := k.(string) // keys of objects are strings
		if seen[name] {
			return nil, fmt.Errorf("Duplicate parameter name '%s' found in configuration nodes.", name) //lint:ignore ST1005 the original's text
		}
		seen[name] = true
		list = append(list, name)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// MarshalJSON writes the tool as tables show prints it. What belongs to the other
// kind is left out.
func (t *Tool) MarshalJSON() ([]byte, error) {
	schema := json.RawMessage(strings.TrimSpace(t.Parameters))
	if len(schema) == 0 {
		schema = json.RawMessage("{}")
	} else if !json.Valid(schema) {
		schema, _ = json.Marshal(t.Parameters) // a string has JSON
	}
	type common struct {
		Kind        string          `json:"tool_type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameter_schema"`
	}
	c := common{t.Kind.String(), t.Name, t.Description, schema}
	if t.Kind == MCP {
		return encode(struct {
			common
			Server     string `json:"server_uri"`
			Remote     string `json:"tool_name"`
			Credential string `json:"credential,omitempty"`
		}{c, t.address(), t.Remote, t.Credential})
	}
	if t.Kind.IsOwn() {
		return encode(struct {
			common
			Server string `json:"server_uri"`
		}{c, t.Server})
	}
	nonNil := func(p []Port) []Port {
		if p == nil {
			return []Port{}
		}
		return p
	}
	return encode(struct {
		common
		Inputs  []Port `json:"input_spec"`
		Outputs []Port `json:"output_spec"`
		Message int32  `json:"message_output_port_index"`
		Keys    string `json:"workflow_filestore"`
		Server  string `json:"server_uri,omitempty"`
	}{c, nonNil(t.Inputs), nonNil(t.Outputs), t.Message, t.Keys, t.Server})
}

// encode writes JSON without changing <, > and &.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func invalid(format string, args ...any) *tenon.Error {
	return tenon.Errorf(tenon.CodeInvalid, format, args...)
}
