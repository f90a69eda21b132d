package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// WorkflowView is a workflow as it is shown.
type WorkflowView struct {
	Tool        string          `json:"tool,omitempty"` // its name in the configuration
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema
	Inputs      []WorkflowPort  `json:"inputs"`
	Outputs     []WorkflowPort  `json:"outputs"`
	Graph       workflow.Graph  `json:"graph"`
}

// WorkflowPort is a table that goes into a workflow, or comes out of it.
type WorkflowPort struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Columns     map[string]string `json:"columns,omitempty"` // name -> type
}

func viewOf(tool string, w *workflow.Workflow) WorkflowView {
	v := WorkflowView{Tool: tool, Name: w.Name, Description: w.Description, Parameters: w.Schema(), Inputs: []WorkflowPort{}, Outputs: []WorkflowPort{}, Graph: w.Graph()}
	for _, in := range w.Inputs {
		v.Inputs = append(v.Inputs, WorkflowPort{in.Name, in.Description, in.Columns})
	}
	for _, out := range w.Outputs {
		v.Outputs = append(v.Outputs, WorkflowPort{out.Name, out.Description, out.Columns})
	}
	return v
}

// WorkflowViews lists the workflows of the configuration, by name.
func (h *Host) WorkflowViews() []WorkflowView {
	list := []WorkflowView{}
	for _, name := range slices.Sorted(maps.Keys(h.flows.tools)) {
		if f := h.flows.tools[name]; !f.Foreign {
			list = append(list, viewOf(name, f.Workflow.Workflow))
		}
	}
	return list
}

// RunWorkflowView returns the workflow of a run, as the run has it. Errors: not_found; invalid, where the
// run is none of a workflow.
func (h *Host) RunWorkflowView(ctx context.Context, run string) (WorkflowView, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return WorkflowView{}, err
	}
	if row.Core != workflow.Version {
		return WorkflowView{}, tenon.Errorf(tenon.CodeInvalid, "run %s is none of a workflow", run)
	}
	spec, err := h.flowSpec(ctx, run)
	if err != nil {
		return WorkflowView{}, err
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil {
		return WorkflowView{}, err
	}
	return viewOf("", p.w), nil
}
