package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// WorkflowView describes a workflow for display.
type WorkflowView struct {
	Tool        string          `json:"tool,omitempty"` // name in the configuration
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema
	Inputs      []WorkflowPort  `json:"inputs"`
	Outputs     []WorkflowPort  `json:"outputs"`
	Graph       workflow.Graph  `json:"graph"`
}

// WorkflowPort is an input table or an output table of a workflow.
type WorkflowPort struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Columns     map[string]string `json:"columns,omitempty"` // name -> type
}

func viewOf(tool string, w *workflow.Workflow) WorkflowView {
	v := WorkflowView{Tool: tool, Name: w.Name, Description: w.Description, Parameters: w.Schema(),
		Inputs: []WorkflowPort{}, Outputs: []WorkflowPort{}, Graph: w.Graph()}
	for _, in := range w.Inputs {
		v.Inputs = append(v.Inputs, WorkflowPort{in.Name, in.Description, in.Columns})
	}
	for _, out := range w.Outputs {
		v.Outputs = append(v.Outputs, WorkflowPort{out.Name, out.Description, out.Columns})
	}
	return v
}

func (h workflowsHandle) List(context.Context) ([]WorkflowView, error) {
	list := []WorkflowView{}
	for _, name := range slices.Sorted(maps.Keys(h.host.flows.tools)) {
		if f := h.host.flows.tools[name]; !f.Foreign {
			list = append(list, viewOf(name, f.Workflow.Workflow))
		}
	}
	return list, nil
}

func (h runDataHandle) Workflow(ctx context.Context) (WorkflowView, error) {
	row, err := h.host.store.Run(ctx, h.id)
	if err != nil {
		return WorkflowView{}, err
	}
	if row.Core != workflow.Version {
		return WorkflowView{}, tenon.Errorf(tenon.CodeInvalid, "run %s is not the run of a workflow", h.id)
	}
	spec, err := h.host.flows.Spec(ctx, h.id)
	if err != nil {
		return WorkflowView{}, err
	}
	p, err := h.host.flows.Stored(ctx, spec.Workflow)
	if err != nil {
		return WorkflowView{}, err
	}
	return viewOf("", p.Workflow), nil
}
