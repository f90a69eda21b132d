package cli

import (
	"context"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/workflow"
)

// callFarFlow calls a workflow of another tenon with tables. They are sent with the request, which a call of a tool
// cannot do, so the workflow itself is run.
func (a *app) callFarFlow(ctx context.Context, f *far, name string, params callArguments, p *ports, yes bool) error {
	switch {
	case p.debug:
		return tenon.Errorf(tenon.CodeInvalid, "--debug cannot be combined with --remote: "+
			"the folder would be kept there")
	case yes:
		return noFarYes()
	}
	list, err := f.Workflows().List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(w host.WorkflowView) bool { return w.Tool == name })
	if i < 0 {
		if _, err := f.Tools().Get(ctx, name); err != nil {
			return err
		}
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s' is not a workflow; only workflows accept --in", name)
	}
	var inputs []workflow.Input
	for _, in := range list[i].Inputs {
		inputs = append(inputs, workflow.Input{Name: in.Name})
	}
	var outputs []workflow.Output
	for _, out := range list[i].Outputs {
		outputs = append(outputs, workflow.Output{Name: out.Name})
	}
	if err := p.check(a, outputs); err != nil {
		return err
	}
	files, done, err := p.open(a, inputs)
	if err != nil {
		return err
	}
	defer done()
	if params, err = f.readWords(ctx, name, params); err != nil {
		return err
	}
	run, err := f.Workflows().Start(ctx, host.WorkflowCall{Name: name, Params: params.raw, Files: files})
	if err != nil {
		return err
	}
	if err := a.drive(ctx, f, run, 0, false); err != nil {
		return err
	}
	return p.writeResult(ctx, a, f, run.ID)
}

// noFarYes is the error of --yes with --remote.
func noFarYes() error {
	return tenon.Errorf(tenon.CodeInvalid, "--yes cannot be combined with --remote: omit it, "+
		"and decide the questions of workflow steps with tenon approvals")
}
