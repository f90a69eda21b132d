package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// RunWorkflow runs a workflow and waits for its result. [Config.Approve] decides the calls for which the run waits.
// If ctx ends first, the run continues in the background. Errors: as [Workflows.Start]; the error of a failed run;
// cancelled; waiting (without Approve, the run waits for a decision). After Start the result has the run.
func RunWorkflow(ctx context.Context, h *Host, c WorkflowCall) (r WorkflowResult, err error) {
	run, err := h.Workflows().Start(ctx, c)
	if err != nil {
		return r, err
	}
	r.Run = run
	s := &stream{h: h, ctx: ctx, run: run.ID, yield: func(_ view.Event, broke error) bool {
		err = broke
		return true
	}}
	s.follow(ctx)
	if err != nil {
		return r, err
	}
	if s.last == engine.EventWaiting {
		return r, tenon.Errorf(tenon.CodeWaiting, "run %s waits for a decision; list, decide and resume it, or set "+
			"Config.Approve", run.ID)
	}
	if r, err = h.Runs().Open(run.ID).Data().Result(ctx); err != nil {
		return r, err
	}
	switch {
	case r.Err != nil:
		return r, r.Err
	case r.Run.State == tenon.RunCancelled:
		return r, tenon.Errorf(tenon.CodeCancelled, "run %s was cancelled", run.ID)
	}
	return r, nil
}
