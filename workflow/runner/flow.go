package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/workflow"
)

// Workflow is a workflow that is offered as a tool. It contains the file and its data, as [config.ReadWorkflow] returns
// them.
type Workflow struct {
	*workflow.Workflow
	Pack *workflow.Pack
	// Description replaces the description in the file for models. If empty, the description in the file is used.
	Description string
	// Foreign means that the workflow came with a tool table. Its own annotations are then not trusted.
	Foreign bool
}

// Check returns an error unless the workflow has both its file and its pack.
func (w Workflow) Check() error {
	if w.Workflow == nil || w.Pack == nil {
		return tenon.Errorf(tenon.CodeConfig, "a workflow needs its file and its pack: take both from "+
			"config.ReadWorkflow")
	}
	return nil
}

// Flow is a workflow that can be run, and called as a tool.
type Flow struct {
	Workflow
	zip func() (zip []byte, digest string, err error)
}

// NewFlow returns a workflow that can be run. The workflow is packed when its zip is first needed.
func NewFlow(w Workflow) *Flow {
	f := &Flow{Workflow: w}
	digest := ""
	once := sync.OnceValues(func() ([]byte, error) {
		b, err := w.Pack.Zip()
		digest = store.Digest(b)
		return b, err
	})
	f.zip = func() ([]byte, string, error) {
		b, err := once()
		return b, digest, err
	}
	return f
}

// Zip returns the packed workflow and the digest of its bytes.
func (f *Flow) Zip() (zip []byte, digest string, err error) { return f.zip() }

// Describe returns the description for models: the purpose of the workflow, and its tables.
func (f *Flow) Describe() string {
	text := cmp.Or(f.Description, f.File.Description)
	if len(f.Inputs) == 0 && len(f.Outputs) == 0 {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "description: %s\n", tenon.EventData(text))
	ports := func(key string, list []workflow.Input) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:\n", key)
		for _, p := range list {
			fmt.Fprintf(&b, "  - name: %s\n    description: %s\n    type: Table\n", p.Name,
				tenon.EventData(p.Description))
			if len(p.Columns) > 0 {
				b.WriteString("    columns:\n")
				for _, c := range slices.Sorted(maps.Keys(p.Columns)) {
					fmt.Fprintf(&b, "      %s: %s\n", tenon.EventData(c), p.Columns[c])
				}
			}
		}
	}
	ports("input_ports", f.Inputs)
	outputs := make([]workflow.Input, len(f.Outputs))
	for i, o := range f.Outputs {
		outputs[i] = workflow.Input{Name: o.Name, Description: o.Description, Columns: o.Columns}
	}
	ports("output_ports", outputs)
	return b.String()
}

// CallSchema returns the schema of a call. For a workflow without input tables, it is the schema of the parameters.
// Otherwise the parameters are in the member configuration, and the ids of the tables in data_inputs. A call may leave
// out configuration if each parameter has a default, and may send an empty one if there are no parameters, as KNIME's
// agents do.
func (f *Flow) CallSchema() json.RawMessage {
	params := f.Schema()
	if len(f.Inputs) == 0 {
		return params
	}
	props, required := `"configuration":{"type":"object","maxProperties":0},`, []string{}
	if len(f.Parameters) > 0 {
		props = `"configuration":` + string(params) + `,`
	}
	var needs struct{ Required []string }
	if json.Unmarshal(params, &needs) == nil && len(needs.Required) > 0 {
		required = append(required, "configuration")
	}
	ports, names := []string{}, []string{}
	for _, in := range f.Inputs {
		about := map[string]any{"type": []string{"integer", "string"}, "description": "Id of the table in the data " +
			"repository: " + in.Description}
		ports = append(ports, string(tenon.EventData(in.Name))+":"+string(tenon.EventData(about)))
		names = append(names, in.Name)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s"data_inputs":{"type":"object",`+
		`"properties":{%s},"required":%s,"additionalProperties":false}},"required":%s,"additionalProperties":false}`,
		props, strings.Join(ports, ","), tenon.EventData(names), tenon.EventData(append(required, "data_inputs")))
}

// Arguments returns arguments that match the schema and contain the parameters. The ids of tables are placeholders,
// because the tables are passed separately.
func (f *Flow) Arguments(params json.RawMessage) json.RawMessage {
	if len(f.Inputs) == 0 {
		return params
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	ids := map[string]int{}
	for i, in := range f.Inputs {
		ids[in.Name] = i
	}
	args := map[string]any{"data_inputs": ids}
	if len(f.Parameters) > 0 {
		args["configuration"] = params
	}
	return tenon.EventData(args)
}

// Split splits the arguments of a call into the parameters and the ids of tables by port.
func (f *Flow) Split(args json.RawMessage) (params json.RawMessage, ids map[string]string, err error) {
	if len(f.Inputs) == 0 {
		return args, nil, nil
	}
	var c struct {
		Configuration json.RawMessage            `json:"configuration"`
		Inputs        map[string]json.RawMessage `json:"data_inputs"`
	}
	if err := json.Unmarshal(args, &c); err != nil {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "the arguments cannot be read: %w", err)
	}
	ids = map[string]string{}
	for port, raw := range c.Inputs {
		ids[port] = strings.Trim(string(raw), `"`)
	}
	return c.Configuration, ids, nil
}
