package config

import (
	"context"

	"github.com/tenonhq/tenon/workflow"
)

// Edit makes the changes of a plan.
func Edit(ctx context.Context, o Options, e Edits) (*Config, error) {
	p, err := PlanEdit(ctx, o, e)
	if err != nil {
		return nil, err
	}
	return p.Config, p.Write(ctx)
}

// ParseWorkflow reads a workflow file, called name in errors. Errors: [Errors].
func ParseWorkflow(name string, data []byte) (*workflow.Workflow, error) {
	w, _, err := parseWorkflow(name, data, 0)
	return w, err
}
