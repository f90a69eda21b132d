package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
)

// WorkflowCall is the run of a workflow that a person begins.
type WorkflowCall struct {
	Workflow  Workflow
	Params    json.RawMessage   // a JSON object; empty: {}
	Inputs    map[string][]byte // Arrow files or streams, by port
	Principal tenon.Principal   // empty: the local one
	// Grant says who allowed beforehand what the steps would ask; empty: they ask.
	Grant string
	// Debug keeps the folder of a run that fails, with the inputs of its steps.
	Debug bool
	// Credentials are what the caller has of its own at servers; see [Host.Accept].
	Credentials Credentials
}

// StartWorkflow begins the run of a workflow. Beginning it is the permission to run it,
// not for what its steps do. Errors: invalid (parameters, tables, a tool that is not
// there), denied, those of connecting, store.
func (h *Host) StartWorkflow(ctx context.Context, c WorkflowCall) (tenon.Run, error) {
	if err := c.Workflow.check(); err != nil {
		return tenon.Run{}, err
	}
	f := newFlow(c.Workflow)
	inputs, blobs, err := h.takeTables(ctx, c.Inputs)
	if err != nil {
		return tenon.Run{}, err
	}
	row := tenon.Run{ID: tenon.NewID("run", h.now()), Core: workflow.Version, Principal: c.Principal, Title: shorten("workflow "+f.Name, titleLen),
		State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	if row.Principal == "" {
		row.Principal = tenon.PrincipalLocal
	}
	spec, s, pack, err := h.beginWorkflow(ctx, f, row.ID, c.Params, inputs, blobs)
	if err != nil {
		return tenon.Run{}, err
	}
	spec.Grant, spec.MaxDepth = c.Grant, h.config.Limits.WithDefaults().MaxDepth
	if spec.Debug = c.Debug; c.Debug && spec.Folder == "" {
		if spec.Folder, err = h.workFolder(row.ID); err != nil {
			return tenon.Run{}, err
		}
	}
	spec.Brought = c.Credentials.servers()
	h.brought.hold(row.ID, row.Principal, c.Credentials)
	if err = h.startFlow(ctx, engine.Spec{Run: row, Fresh: true}, spec, s, pack, blobs); err != nil {
		h.brought.drop(row.ID)
	}
	return row, err
}

// startWorkflowChild begins the run of a workflow that a call of its tool leads to.
func (h *Host) startWorkflowChild(ctx context.Context, caller tenon.Run, id string, c *agent.ChildCommand) error {
	f := h.flows.tools[c.Agent]
	if f == nil {
		return tenon.Errorf(tenon.CodeConfig, "there is no workflow '%s' any more", c.Agent)
	}
	params, _, err := f.split(c.Arguments)
	if err != nil {
		return err
	}
	spec, s, pack, err := h.beginWorkflow(ctx, f, id, params, c.Inputs, nil)
	if err != nil {
		return err
	}
	spec.Grant, spec.Grants, spec.Depth, spec.MaxDepth, spec.Allowance = c.Grant, c.Grants, c.Depth, c.MaxDepth, c.Allowance
	if spec.Debug = c.Debug; c.Debug && spec.Folder == "" {
		if spec.Folder, err = h.workFolder(id); err != nil {
			return err
		}
	}
	row := tenon.Run{ID: id, Session: caller.Session, Principal: caller.Principal, Caller: caller.ID, Core: workflow.Version, Agent: caller.Agent,
		Title: shorten("workflow "+f.Name, titleLen), State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	return h.startFlow(ctx, engine.Spec{Run: row}, spec, s, pack, nil)
}

// startFlow stores what the run needs together with its beginning. What is stored
// already is named only.
func (h *Host) startFlow(ctx context.Context, e engine.Spec, spec workflow.Spec, s *catalog.Snapshot, pack []byte, tables map[string][]byte) error {
	e.Data = encode(spec)
	var own []string // the inputs that other runs have stored
	for _, t := range spec.Inputs {
		if tables[t.Digest] == nil {
			own = append(own, t.Digest)
		} else {
			e.Blobs = append(e.Blobs, tables[t.Digest])
		}
	}
	e.Uses = own
	base := e.Blobs
	if s != nil && h.isStored(spec.Tools) {
		e.Uses = append(slices.Clip(e.Uses), spec.Tools)
	} else if s != nil {
		e.Blobs = append(slices.Clip(e.Blobs), s.Encode())
	}
	if h.isStored(spec.Workflow) {
		e.Uses = append(slices.Clip(e.Uses), spec.Workflow)
	} else {
		e.Blobs = append(slices.Clip(e.Blobs), pack)
	}
	err := h.engine.Start(ctx, e)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && len(e.Uses) > len(own) { // the runs that had it were deleted since
		e.Uses, e.Blobs = own, append(slices.Clip(base), pack)
		if s != nil {
			e.Blobs = append(e.Blobs, s.Encode())
		}
		err = h.engine.Start(ctx, e)
	}
	if err != nil {
		h.dropFolder(spec.Folder)
		return err
	}
	h.markStored(spec.Workflow)
	if s != nil {
		h.markStored(spec.Tools)
	}
	return nil
}

// newWorkflowCore makes the core of a workflow's run.
func (h *Host) newWorkflowCore(ctx context.Context, e engine.Spec) (tenon.Core, error) {
	var spec workflow.Spec
	if err := json.Unmarshal(e.Data, &spec); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "run %s: its spec cannot be read: %w", e.Run.ID, err)
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	return workflow.New(p.w, spec)
}

// packOf returns the workflow of a run, by the digest of its pack.
func (h *Host) packOf(ctx context.Context, digest string) (*packed, error) {
	h.flows.mu.Lock()
	p := h.flows.packs[digest]
	h.flows.mu.Unlock()
	if p != nil {
		return p, nil
	}
	b, err := h.store.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	w, pack, err := config.UnpackWorkflow("the stored workflow", b)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "a workflow that was stored cannot be read by this version of tenon: %w", err)
	}
	if err := h.keepPacked(digest, w, pack); err != nil {
		return nil, err
	}
	return h.packOf(ctx, digest)
}

// keepPacked keeps a workflow for the runs that have it.
func (h *Host) keepPacked(digest string, w *workflow.Workflow, pack *workflow.Pack) error {
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	if h.flows.packs[digest] != nil {
		return nil
	}
	p := &packed{w: w, pack: pack}
	requests := map[string]catalog.Tool{}
	for _, st := range w.Steps {
		if st.HTTP != nil {
			requests[w.Name+"."+st.ID] = catalog.Tool{Request: *st.HTTP}
		}
	}
	if len(requests) > 0 {
		templates, err := policy.NewTemplates()
		if err != nil {
			return err
		}
		if p.http, err = h.openHTTPTools(templates, requests); err != nil {
			return err
		}
	}
	if len(h.flows.packs) >= maxPacked {
		for k, old := range h.flows.packs { // any: they are read again when they are needed
			if delete(h.flows.packs, k); old.http != nil {
				old.http.client.Close()
			}
			break
		}
	}
	h.flows.packs[digest] = p
	return nil
}

// closeFlows lets go of the connections of requests.
func (h *Host) closeFlows() {
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	for _, p := range h.flows.packs {
		if p.http != nil {
			p.http.client.Close()
		}
	}
}

// flowSpec reads what the run of a workflow began with.
func (h *Host) flowSpec(ctx context.Context, run string) (workflow.Spec, error) {
	h.flows.mu.Lock()
	spec, ok := h.flows.specs[run]
	h.flows.mu.Unlock()
	if ok {
		return spec, nil
	}
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil {
		return spec, err
	}
	var first engine.Spec
	if len(events) == 0 || json.Unmarshal(events[0].Data, &first) != nil || json.Unmarshal(first.Data, &spec) != nil {
		return spec, tenon.Errorf(tenon.CodeStore, "run %s: its journal does not begin with its spec", run)
	}
	if len(first.Data) <= maxSpec {
		h.flows.mu.Lock()
		defer h.flows.mu.Unlock()
		if len(h.flows.specs) >= maxPacked {
			clear(h.flows.specs)
		}
		h.flows.specs[run] = spec
	}
	return spec, nil
}

// stepTools is the toolset of the requests of a workflow's steps.
func (h *Host) stepTools(ctx context.Context, row tenon.Run) (tenon.Toolset, error) {
	spec, err := h.flowSpec(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	if p.http == nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "run %s: its workflow has no requests", row.ID)
	}
	return h.wrapped(workflow.StepServer, p.http), nil
}

// observe is told of what runs have stored: a workflow that has ended leaves nothing
// behind.
func (h *Host) observe(row tenon.Run, events []tenon.Event) {
	if row.Core == workflow.Version && events[len(events)-1].Kind == tenon.EventDone {
		h.leaveFlow(context.Background(), row)
	}
	if row.State.Ended() {
		h.brought.drop(row.ID)
	}
	if h.cfg.Observe != nil {
		h.cfg.Observe(row, events)
	}
}

// WorkflowResult is what the run of a workflow came to.
type WorkflowResult struct {
	Run     tenon.Run
	Message string        // for the caller
	Outputs []tenon.Table // nil: it failed
	Folder  string        // of a failed run in debug mode
	Err     *tenon.Error  // why it failed
}

// WorkflowResult returns what a run came to that is a workflow, or a call of one. A run
// that has not ended is a conflict.
func (h *Host) WorkflowResult(ctx context.Context, run string) (WorkflowResult, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return WorkflowResult{}, err
	}
	if row.Core == agent.DirectVersion {
		if row, err = h.store.Run(ctx, run+"/1.0"); err != nil {
			return WorkflowResult{}, err
		}
	}
	if row.Core != workflow.Version {
		return WorkflowResult{}, tenon.Errorf(tenon.CodeInvalid, "run %s is no workflow", run)
	}
	done, sum, err := h.workflowDone(ctx, row.ID)
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
	spec, err := h.flowSpec(ctx, row.ID)
	if err == nil && spec.Debug && done.State == tenon.RunFailed {
		r.Folder = spec.Folder
	}
	return r, err
}

// TableData returns the rows of a table, an Arrow file or stream.
func (h *Host) TableData(ctx context.Context, t tenon.Table) ([]byte, error) {
	return h.store.Blob(ctx, t.Digest)
}
