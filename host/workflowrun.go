package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// WorkflowCall is a request to run a workflow.
type WorkflowCall struct {
	// Name selects a configured workflow, by the name of its tool, if Workflow is not set.
	Name      string
	Workflow  Workflow
	Params    json.RawMessage   // a JSON object; empty: {}
	Inputs    map[string][]byte // Arrow files or streams, by port
	Principal tenon.Principal   // empty: the local user
	// Grant is the name of the person who allowed the steps beforehand. If empty, steps ask for approval.
	Grant string
	// Debug keeps the folder of a run that fails, with the inputs of its steps.
	Debug bool
	// Credentials are the caller's own credentials for servers; see [Callers.Accept].
	Credentials Credentials
}

func (h workflowsHandle) Start(ctx context.Context, c WorkflowCall) (tenon.Run, error) {
	if c.Name != "" && c.Workflow.Workflow == nil {
		w, err := h.Get(ctx, c.Name)
		if err != nil {
			return tenon.Run{}, err
		}
		c.Workflow = w
	}
	if err := c.Workflow.check(); err != nil {
		return tenon.Run{}, err
	}
	if err := h.mayGrant(c.Grant); err != nil {
		return tenon.Run{}, err
	}
	f := newFlow(c.Workflow)
	inputs, blobs, err := h.takeTables(ctx, c.Inputs)
	if err != nil {
		return tenon.Run{}, err
	}
	row := tenon.Run{ID: tenon.NewID("run", h.now()), Core: workflow.Version, Principal: c.Principal,
		Title: tenon.Shorten("workflow "+f.Name, titleLen),
		State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	if row.Principal == "" {
		row.Principal = tenon.PrincipalLocal
	}
	spec, s, pack, err := h.beginWorkflow(ctx, f, row.ID, c.Params, inputs, blobs)
	if err != nil {
		return tenon.Run{}, err
	}
	spec.Grant, spec.MaxDepth = c.Grant, h.config.Limits.WithDefaults().MaxDepth
	spec.Debug = c.Debug
	if c.Debug && spec.Folder == "" {
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

// startWorkflowChild begins the run of a workflow for a call of its tool.
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
	spec.Grant, spec.Grants, spec.Depth, spec.MaxDepth, spec.Allowance = c.Grant, c.Grants, c.Depth, c.MaxDepth,
		c.Allowance
	spec.Debug = c.Debug
	if c.Debug && spec.Folder == "" {
		if spec.Folder, err = h.workFolder(id); err != nil {
			return err
		}
	}
	row := tenon.Run{ID: id, Session: caller.Session, Principal: caller.Principal, Caller: caller.ID,
		Core: workflow.Version, Agent: caller.Agent,
		Title: tenon.Shorten("workflow "+f.Name, titleLen), State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	return h.startFlow(ctx, engine.Spec{Run: row}, spec, s, pack, nil)
}

// startFlow begins a run and stores everything that it needs in the same commit. Data that the store already has are
// only referenced.
func (h *Host) startFlow(ctx context.Context, e engine.Spec, spec workflow.Spec, s *catalog.Snapshot, pack []byte,
	tables map[string][]byte) error {
	e.Data = encode(spec)
	var own []string // inputs that other runs have stored
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
	if tenon.ErrorCode(err) == tenon.CodeNotFound && len(e.Uses) > len(own) {
		// The runs with these data were deleted since.
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
	spec, err := view.SpecOf[workflow.Spec](e)
	if err != nil {
		return nil, err
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	h.flows.mu.Lock()
	if len(h.flows.digests) >= maxDigests {
		clear(h.flows.digests)
	}
	h.flows.digests[e.Run.ID] = spec.Workflow
	h.flows.mu.Unlock()
	return workflow.New(p.w, spec)
}

// packOf returns the workflow of a run by the digest of its pack.
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
		return nil, tenon.Errorf(tenon.CodeStore, "a workflow that was stored cannot be read by this version of "+
			"tenon: %w", err)
	}
	if err := h.keepPacked(digest, w, pack); err != nil {
		return nil, err
	}
	return h.packOf(ctx, digest)
}

// keepPacked caches a workflow for its runs.
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
		for k, old := range h.flows.packs { // an arbitrary one: it is read again when needed
			delete(h.flows.packs, k)
			if old.http != nil {
				old.http.client.Close()
			}
			break
		}
	}
	h.flows.packs[digest] = p
	return nil
}

// closeFlows closes the connections of HTTP steps.
func (h *Host) closeFlows() {
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	for _, p := range h.flows.packs {
		if p.http != nil {
			p.http.client.Close()
		}
	}
}

// flowSpec reads the spec of a workflow's run.
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
	if _, spec, err = view.FirstSpec[workflow.Spec](run, events); err != nil {
		return spec, err
	}
	if len(events[0].Data) <= maxSpec {
		h.flows.mu.Lock()
		defer h.flows.mu.Unlock()
		if len(h.flows.specs) >= maxPacked {
			clear(h.flows.specs)
		}
		h.flows.specs[run] = spec
	}
	return spec, nil
}

// flowDigest returns the digest of a run's workflow. The run may not be stored yet.
func (h *Host) flowDigest(ctx context.Context, run string) (string, error) {
	h.flows.mu.Lock()
	digest, ok := h.flows.digests[run]
	h.flows.mu.Unlock()
	if ok {
		return digest, nil
	}
	spec, err := h.flowSpec(ctx, run)
	return spec.Workflow, err
}

// doRequest carries out the request of a workflow's step.
func (h *Host) doRequest(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	spec, err := h.flowSpec(ctx, s.Row.ID)
	if err != nil {
		return nil, err
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	if p.http == nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "run %s: its workflow has no requests", s.Row.ID)
	}
	steps := *p.http
	steps.entry = h.entryOf(spec.Workflow)
	return h.wrapped(catalog.StepServer, &steps).Call(ctx, s)
}

// entryOf returns the path of the entry whose workflow has a digest, "" if none has. Among several, it is the entry of
// the most trusted layer.
func (h *Host) entryOf(digest string) string {
	found := ""
	for _, name := range slices.Sorted(maps.Keys(h.flows.tools)) {
		path := "tools." + name
		if _, own, err := h.flows.tools[name].zip(); err == nil && own == digest &&
			(found == "" || h.config.FromUser(path) && !h.config.FromUser(found)) {
			found = path
		}
	}
	return found
}

// observe receives the events that runs have stored. It cleans up after a workflow that has ended.
func (h *Host) observe(row tenon.Run, events []tenon.Event) {
	if row.Core == workflow.Version && events[len(events)-1].Kind == tenon.EventDone {
		h.leaveFlow(context.Background(), row)
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
	row, err := h.store.Run(ctx, h.id)
	if err != nil {
		return WorkflowResult{}, err
	}
	if row.Core == agent.DirectVersion {
		if row, err = h.store.Run(ctx, h.id+"/1.0"); err != nil {
			return WorkflowResult{}, err
		}
	}
	if row.Core != workflow.Version {
		return WorkflowResult{}, tenon.Errorf(tenon.CodeInvalid, "run %s is no workflow", h.id)
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
