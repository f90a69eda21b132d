package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Kind is the kind of a tool, field 0 of a tool cell.
type Kind int64

// The kinds of tools. KNIME defines Workflow and MCP. tenon adds the kinds from 100 on, and stores the definition of
// such a tool in its server_uri; see [Address].
const (
	Workflow Kind = 0
	MCP      Kind = 1
	HTTP     Kind = 100 // an HTTP request
	Prompt   Kind = 101 // a prompt template for a model
	Agent    Kind = 102 // an agent of the configuration
)

var kindNames = map[Kind]string{Workflow: "WORKFLOW", MCP: "MCP", HTTP: "HTTP", Prompt: "PROMPT", Agent: "AGENT"}

// noKind is the kind of a tool whose type is missing.
const noKind = Kind(math.MinInt32)

// String returns the name of the kind, or its number if it is unknown.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	if k == noKind {
		return "MISSING"
	}
	return strconv.FormatInt(int64(k), 10)
}

// IsKnown reports whether tenon can use tools of the kind.
func (k Kind) IsKnown() bool { return kindNames[k] != "" }

// IsOwn reports whether the kind belongs to tenon. KNIME cannot run such tools.
func (k Kind) IsOwn() bool { return k.IsKnown() && k >= HTTP }

// Port is an input or output table of a workflow tool.
type Port struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"` // Table
	// Spec is JSON that describes the columns of the table. It may be empty.
	Spec string `json:"spec,omitempty"`
}

// Tool is one cell of a tool column.
type Tool struct {
	Kind        Kind
	Name        string
	Description string
	// Parameters is JSON in the form that the table stores: the schema of an object for an MCP
	// tool, a map from names to properties for a workflow tool. See [Tool.Schema].
	Parameters string
	Inputs     []Port
	Outputs    []Port
	// Message is the index of the output that holds the text for the model, or -1.
	Message int32
	// Keys are the file store keys, separated by semicolons: the packed workflow, then its data.
	Keys string
	// Server is the address of an MCP tool's server, without the fragment that [Tool.URI] adds. For
	// tenon's kinds, it defines the tool.
	Server string
	// Remote is the tool's name on the server.
	Remote string
	// Credential is the name of a secret of the configuration, never its value.
	Credential string

	nulls uint16 // bit set of the fields that are null in the table
}

// Use returns an error if tools of this kind cannot be used, or if the tool has no name by which a model could call
// it. row describes the row in the error; see [ToolRow.Place].
func (t *Tool) Use(row string) error {
	switch {
	case t.Kind.IsKnown() && t.isNamed():
		return nil
	case t.Kind.IsKnown():
		return invalid("the tool has no name (%s, field 1); give it one", row)
	}
	return invalid("Unknown tool type index: %d (%s, tool '%s'); the row can be copied, but only a tenon "+
		"that knows this kind can use it", t.Kind, row, tenon.Visible(t.Name))
}

func (t *Tool) isNamed() bool { return strings.TrimSpace(t.Name) != "" }

// Schema returns the JSON Schema of the tool's parameters. Its type is always object. All
// parameters of a workflow tool are required. If there are no parameters, the object has no
// properties.
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

// keys returns the keys of a valid JSON object in order. A duplicate key is an error.
func keys(raw []byte) ([]string, error) {
	list, seen := []string{}, map[string]bool{}
	for key := range rawjson.Members(raw) {
		name := string(key)
		if seen[name] {
			//lint:ignore ST1005 KNIME's text
			return nil, fmt.Errorf("Duplicate parameter name '%s' found in configuration nodes.", name)
		}
		seen[name] = true
		list = append(list, name)
	}
	return list, nil
}

// MarshalJSON encodes the tool in the form that tenon tables show prints. It omits the fields of
// other kinds.
func (t *Tool) MarshalJSON() ([]byte, error) {
	schema := json.RawMessage(strings.TrimSpace(t.Parameters))
	if len(schema) == 0 {
		schema = json.RawMessage("{}")
	} else if !json.Valid(schema) {
		schema, _ = json.Marshal(t.Parameters) // a string always encodes
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

// WithServer returns a description that names the tool's server, for tools of several servers with one name. It does
// not change a description that names a server in this form.
func WithServer(description, server string) string {
	if namesServer.MatchString(description) {
		return description
	}
	return strings.TrimSpace(description + " (server " + server + ")")
}

// namesServer matches a description that [WithServer] has returned.
var namesServer = regexp.MustCompile(`\(server [^()]+\)$`)

// encode returns v as JSON without escaping <, > and &.
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
