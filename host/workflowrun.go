package host

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/workflow"
	"github.com/tenonhq/tenon/workflow/runner"
)

// WorkflowCall is a request to run a workflow.
type WorkflowCall struct {
	// Name selects a configured workflow, by the name of its tool, if Workflow is not set.
	Name     string
	Workflow Workflow
	Params   json.RawMessage   // a JSON object; empty means {}
	Inputs   map[string][]byte // Arrow files or streams, by port
	// Files are further tables, by port. They may be of any size, and are read in place: nobody may change or close
	// them before Start returns. An example is io.NewSectionReader(file, 0, size).
	Files     map[string]*io.SectionReader
	Principal tenon.Principal // empty: the local user
	// Grant is the name of the person who allowed the steps beforehand. If empty, steps ask for approval.
	Grant string
	// Debug keeps the folder of a run that fails, with the inputs of its steps.
	Debug bool
	// Credentials are the caller's own credentials for servers; see [Callers.Accept].
	Credentials Credentials

	id, schedule string // id of the run (if empty, a random one); the schedule that starts it, and its time
}

func (h workflowsHandle) Start(ctx context.Context, c WorkflowCall) (tenon.Run, error) {
	if c.Name != "" && c.Workflow.Workflow == nil {
		w, err := h.Get(ctx, c.Name)
		if err != nil {
			return tenon.Run{}, err
		}
		c.Workflow = w
	}
	if err := c.Workflow.Check(); err != nil {
		return tenon.Run{}, err
	}
	if err := h.host.mayGrant(c.Grant); err != nil {
		return tenon.Run{}, err
	}
	f := runner.NewFlow(c.Workflow)
	inputs, given, list, err := h.host.takeTables(ctx, c.Inputs, c.Files)
	if err != nil {
		return tenon.Run{}, err
	}
	row := tenon.Run{ID: cmp.Or(c.id, tenon.NewID("run", h.host.now())), Core: workflow.Version, Principal: c.Principal,
		Title: tenon.Shorten("workflow "+f.Name, titleLen),
		State: tenon.RunWorking, Created: h.host.now(), Updated: h.host.now()}
	row.Principal = cmp.Or(row.Principal, tenon.PrincipalLocal)
	b, err := h.host.flows.Begin(ctx, f, row.ID, c.Params, inputs, given)
	if err != nil {
		return tenon.Run{}, err
	}
	b.Spec.Grant, b.Spec.MaxDepth = c.Grant, h.host.config.Limits.WithDefaults().MaxDepth
	b.Spec.Debug, b.Spec.Schedule, b.Spec.Brought = c.Debug, c.schedule, c.Credentials.servers()
	h.host.brought.hold(row.ID, row.Principal, c.Credentials)
	if err = h.host.flows.Start(ctx, engine.Spec{Run: row, Fresh: true, Late: h.host.late(list)}, b); err != nil {
		h.host.brought.drop(row.ID)
	}
	return row, err
}

// startWorkflowChild begins the run of a workflow for a call of its tool.
func (h *Host) startWorkflowChild(ctx context.Context, caller tenon.Run, id string, c *agent.ChildCommand) error {
	f := h.flows.tools[c.Agent]
	if f == nil {
		return tenon.Errorf(tenon.CodeConfig, "there is no workflow '%s' any more", c.Agent)
	}
	params, _, err := f.Split(c.Arguments)
	if err != nil {
		return err
	}
	b, err := h.flows.Begin(ctx, f, id, params, c.Inputs, nil)
	if err != nil {
		return err
	}
	b.Spec.Grant, b.Spec.Grants, b.Spec.Depth, b.Spec.MaxDepth = c.Grant, c.Grants, c.Depth, c.MaxDepth
	b.Spec.Allowance, b.Spec.Debug = c.Allowance, c.Debug
	row := tenon.Run{ID: id, Session: caller.Session, Principal: caller.Principal, Caller: caller.ID,
		Core: workflow.Version, Agent: caller.Agent,
		Title: tenon.Shorten("workflow "+f.Name, titleLen), State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	return h.flows.Start(ctx, engine.Spec{Run: row}, b)
}

// doRequest makes the HTTP request of a workflow's step.
func (h *Host) doRequest(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	spec, err := h.flows.Spec(ctx, s.Row.ID)
	if err != nil {
		return nil, err
	}
	p, err := h.flows.Stored(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	if p.Requests == nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "run %s: its workflow has no requests", s.Row.ID)
	}
	return h.wrapped(catalog.StepServer, p.Requests.Toolset(h.entryOf(spec.Workflow))).Call(ctx, s)
}

// entryOf returns the path of the entry whose workflow has a digest, or "" if none has. Among several, it is the
// entry of the most trusted layer.
func (h *Host) entryOf(digest string) string {
	found := ""
	for _, name := range slices.Sorted(maps.Keys(h.flows.tools)) {
		path := "tools." + name
		if _, own, err := h.flows.tools[name].Zip(); err == nil && own == digest &&
			(found == "" || h.config.FromUser(path) && !h.config.FromUser(found)) {
			found = path
		}
	}
	return found
}

// observe receives the events that runs have stored. It cleans up after a workflow that has ended.
func (h *Host) observe(row tenon.Run, events []tenon.Event) {
	if row.Core == workflow.Version && events[len(events)-1].Kind == tenon.EventDone {
		h.flows.Leave(context.Background(), row)
	}
	if row.State.Ended() {
		h.brought.drop(row.ID)
		h.bound.drop(row.ID)
	}
	if row.State.Ended() && row.State != tenon.RunFailed { // a failed run can be resumed
		h.given.drop(row.ID)
	}
	h.began.Store(true)
	if h.cfg.Observe != nil {
		h.tell(row, events)
	}
}

// WorkflowResult is the result of a workflow's run.
type WorkflowResult struct {
	Run     tenon.Run
	Message string        // for the caller
	Outputs []tenon.Table // nil if the run failed
	Folder  string        // folder of a failed run in debug mode
	Err     *tenon.Error  // the error of a failed run
}

func (h runDataHandle) Result(ctx context.Context) (WorkflowResult, error) {
	row, err := h.host.store.Run(ctx, h.id)
	if err != nil {
		return WorkflowResult{}, err
	}
	if row.Core == agent.DirectVersion {
		if row, err = h.host.store.Run(ctx, h.id+"/1.0"); err != nil {
			return WorkflowResult{}, err
		}
	}
	if row.Core != workflow.Version {
		return WorkflowResult{}, tenon.Errorf(tenon.CodeInvalid, "run %s is no workflow", h.id)
	}
	done, sum, err := h.host.flows.Done(ctx, row.ID)
	if err != nil {
		return WorkflowResult{}, err
	}
	r := WorkflowResult{Run: row, Message: done.Answer, Outputs: sum.Outputs, Err: done.Error}
	if done.State == tenon.RunCompleted {
		return r, nil
	}
	cause := "the run was " + string(done.State)
	if done.Error != nil {
		cause = done.Error.Message
	}
	r.Message = workflow.MessageFailed + cause
	spec, err := h.host.flows.Spec(ctx, row.ID)
	if err == nil && spec.Debug && done.State == tenon.RunFailed {
		r.Folder = spec.Folder
	}
	return r, err
}
