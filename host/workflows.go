package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// Workflow is a workflow that is offered as a tool: the file and the data with it, as [config.ReadWorkflow] returns
// them.
type Workflow struct {
	*workflow.Workflow
	Pack *workflow.Pack
	// Description replaces the file's description for models. If empty, the file's description is used.
	Description string
	// Foreign says that the workflow came with a tool table, so its own annotations do not count.
	Foreign bool
}

// check returns an error unless the workflow has both its file and its pack.
func (w Workflow) check() error {
	if w.Workflow == nil || w.Pack == nil {
		return tenon.Errorf(tenon.CodeConfig, "a workflow needs its file and its pack: take both from "+
			"config.ReadWorkflow")
	}
	return nil
}

// flow is a workflow that the host can run.
type flow struct {
	Workflow
	zip func() (zip []byte, digest string, err error)
}

func newFlow(w Workflow) *flow {
	f := &flow{Workflow: w}
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

// workflows are the workflows of a host: the workflows that are tools, by name, and the workflows of runs, by the
// digests of their packs.
type workflows struct {
	tools map[string]*flow

	mu    sync.Mutex
	packs map[string]*packed
	specs map[string]workflow.Spec // of runs at work, read by every step and never changed
	// digests are the digests of the packs of runs at work, by run.
	digests map[string]string

	folders sync.Mutex // held while data are unpacked, which takes longer than mu may be held
}

// packed is the workflow of a run.
type packed struct {
	w    *workflow.Workflow
	pack *workflow.Pack
	http *httpTools // the requests of its steps
}

// maxPacked bounds the cached workflows and specs of runs. maxSpec bounds the size of a cached spec, in bytes;
// maxDigests bounds the digests.
const (
	maxPacked  = 256
	maxSpec    = 64 << 10
	maxDigests = 4096
)

// openWorkflows reads the workflows that are tools.
func (h *Host) openWorkflows() error {
	h.flows.tools, h.flows.packs, h.flows.specs = map[string]*flow{}, map[string]*packed{}, map[string]workflow.Spec{}
	h.flows.digests = map[string]string{}
	entries := h.entriesOfKind(tenon.KindWorkflow)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		t := entries[name]
		if !t.IsEnabled() {
			continue
		}
		w, pack, err := h.config.ReadWorkflow(t.Path)
		if err != nil {
			return tenon.Errorf(tenon.CodeConfig, "tools.%s.path: %w", name, err)
		}
		h.flows.tools[name] = newFlow(Workflow{Workflow: w, Pack: pack})
	}
	for name, w := range h.config.TableWorkflows() {
		h.flows.tools[name] = newFlow(Workflow{Workflow: w.Workflow, Pack: w.Pack, Description: w.Description,
			Foreign: true})
	}
	for name, w := range h.cfg.Workflows {
		if err := w.check(); err != nil {
			return err
		}
		if h.flows.tools[name] != nil {
			return tenon.Errorf(tenon.CodeConfig, "there are two workflows '%s'", name)
		}
		h.flows.tools[name] = newFlow(w)
	}
	var list []tenon.Tool
	for _, name := range slices.Sorted(maps.Keys(h.flows.tools)) {
		f := h.flows.tools[name]
		list = append(list, tenon.Tool{Remote: name, Kind: tenon.KindWorkflow, Description: f.describe(),
			Input: f.schema()})
	}
	if len(list) > 0 {
		h.addTools(catalog.WorkflowServer, list)
	}
	return nil
}

// describe returns the description for models: what the workflow does, and its tables.
func (f *flow) describe() string {
	text := cmp.Or(f.Description, f.File.Description)
	if len(f.Inputs) == 0 && len(f.Outputs) == 0 {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "description: %s\n", encode(text))
	ports := func(key string, list []workflow.Input) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:\n", key)
		for _, p := range list {
			fmt.Fprintf(&b, "  - name: %s\n    description: %s\n    type: Table\n", p.Name, encode(p.Description))
			if len(p.Columns) > 0 {
				b.WriteString("    columns:\n")
				for _, c := range slices.Sorted(maps.Keys(p.Columns)) {
					fmt.Fprintf(&b, "      %s: %s\n", encode(c), p.Columns[c])
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

// schema returns the schema of a call: the parameters. If the workflow takes tables, the parameters are in
// configuration, and the ids of the tables in data_inputs.
func (f *flow) schema() json.RawMessage {
	params := f.Schema()
	if len(f.Inputs) == 0 {
		return params
	}
	props, required := "", []string{}
	if len(f.Parameters) > 0 {
		props, required = `"configuration":`+string(params)+`,`, append(required, "configuration")
	}
	ports, names := []string{}, []string{}
	for _, in := range f.Inputs {
		about := map[string]any{"type": []string{"integer", "string"}, "description": "Id of the table in the data " +
			"repository: " + in.Description}
		ports = append(ports, string(encode(in.Name))+":"+string(encode(about)))
		names = append(names, in.Name)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s"data_inputs":{"type":"object",`+
		`"properties":{%s},"required":%s,"additionalProperties":false}},"required":%s,"additionalProperties":false}`,
		props, strings.Join(ports, ","), encode(names), encode(append(required, "data_inputs")))
}

// whole makes arguments for the schema from only the parameters. The ids of the tables are placeholders, because the
// tables are passed separately.
func (f *flow) whole(params json.RawMessage) json.RawMessage {
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
	return encode(args)
}

// split separates the arguments of a call into the parameters and the ids of tables by port.
func (f *flow) split(args json.RawMessage) (params json.RawMessage, ids map[string]string, err error) {
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

// beginWorkflow returns the spec of the workflow's run. Errors: invalid (parameters, tables, a missing tool), errors of
// connecting.
func (h *Host) beginWorkflow(ctx context.Context, f *flow, run string, params json.RawMessage,
	inputs map[string]tenon.Table, blobs map[string][]byte) (spec workflow.Spec, s *catalog.Snapshot, pack []byte,
	err error) {
	spec = workflow.Spec{Name: f.Name, Inputs: inputs, Foreign: f.Foreign}
	if spec.Params, err = f.Params(params); err != nil {
		return spec, nil, nil, err
	}
	if err = f.CheckInputs(inputs); err != nil {
		return spec, nil, nil, err
	}
	if spec.Heads, err = h.heads(ctx, inputs, blobs); err != nil {
		return spec, nil, nil, err
	}
	if s, spec.Names, err = h.toolsOf(ctx, f); err != nil {
		return spec, nil, nil, err
	}
	if s != nil {
		spec.Tools = s.Digest()
		h.remember(spec.Tools, s)
	}
	if pack, spec.Workflow, err = f.zip(); err != nil {
		return spec, nil, nil, err
	}
	if err = h.keepPacked(spec.Workflow, f.Workflow.Workflow, f.Pack); err != nil {
		return spec, s, pack, err
	}
	if err = h.checkSecrets(ctx, f, spec.Workflow); err != nil {
		return spec, s, pack, err
	}
	if f.Data != "" {
		spec.Folder, err = h.workFolder(run)
	}
	return spec, s, pack, err
}

// checkSecrets refuses a workflow whose requests need secrets that do not exist. It also refuses a workflow of a tool
// table whose requests would send secrets of the configuration to addresses that the table chose.
func (h *Host) checkSecrets(ctx context.Context, f *flow, digest string) error {
	p, err := h.packOf(ctx, digest)
	if err != nil || p.http == nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.http.tools)) {
		headers := p.http.tools[name].headers
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			for _, secret := range headers[header].Secrets() {
				step := strings.TrimPrefix(name, f.Name+".")
				ok := h.config.HasSecret(h.entryOf(digest), secret)
				switch {
				case f.Foreign:
					return tenon.Errorf(tenon.CodeDenied, "workflow '%s' came with a table, and the header %s of "+
						"its step '%s' wants the secret '%s'; unpack the workflow, look at it, and make it a tool "+
						"of the configuration",
						f.Name, header, step, secret)
				case !ok:
					return tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': the header %s wants the "+
						"secret '%s', and there is no entry of this name in secrets", step, f.Name, header,
						tenon.Visible(secret))
				}
			}
		}
	}
	return nil
}

// toolsOf returns the tools that the steps of a workflow call: step -> exposed name. Without such steps it asks no
// server.
func (h *Host) toolsOf(ctx context.Context, f *flow) (*catalog.Snapshot, map[string]string, error) {
	var servers []string
	calls, any := 0, false
	sets := h.sets()
	scope := h.flowScope(f)
	for _, st := range f.Steps {
		if err := h.stepInScope(scope, f.Name, st.ID, st.Agent, st.Server); err != nil {
			return nil, nil, err
		}
		if st.Agent != "" {
			if _, err := h.config.Agent(st.Agent); err != nil {
				return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': %w", st.ID, f.Name, err)
			}
		}
		if st.Tool == "" {
			continue
		}
		calls++
		any = any || st.Server == ""
		if st.Server == "" || slices.Contains(servers, st.Server) {
			continue
		}
		if sets[st.Server] == nil {
			// List only configured servers: tenon's own do not help the user.
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), catalog.IsReserved)
			text := nearest(st.Server, names)
			switch {
			case catalog.IsReserved(st.Server): // no tool of its kind is configured
				return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no tool '%s' "+
					"under tools in tenon.yaml, which server '%s' means", st.ID, f.Name, tenon.Visible(st.Tool),
					st.Server)
			case len(names) == 0:
				text = "; add it to servers in tenon.yaml: tenon servers add " + tenon.Visible(st.Server) +
					" -- COMMAND"
			}
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no server '%s'%s",
				st.ID, f.Name, tenon.Visible(st.Server), text)
		}
		servers = append(servers, st.Server)
	}
	if calls == 0 {
		return nil, nil, nil
	}
	if any {
		servers = slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), h.isHelper)
	}
	s, problems, err := h.Tools().Snapshot(ctx, servers...)
	if err != nil {
		return nil, nil, err
	}
	names, called := map[string]string{}, map[string]*tenon.Tool{}
	for _, st := range f.Steps {
		if st.Tool == "" {
			continue
		}
		t := findStep(s, st)
		switch {
		case t == nil && len(problems) > 0:
			return nil, nil, tenon.Errorf(tenon.ErrorCode(problems[0].Err),
				"step '%s' of workflow '%s': there is no tool '%s': %w", st.ID, f.Name, tenon.Visible(st.Tool),
				problems[0].Err)
		case t == nil:
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no tool '%s'%s",
				st.ID, f.Name, tenon.Visible(st.Tool), nearest(st.Tool, toolNames(s, st.Server)))
		case !h.isHelper(t.Server) && !scope.HasServer(t.Server, h.identify(t.Server, t.Remote).Server):
			return nil, nil, outOfScope(f.Name, st.ID, "server", t.Server)
		case h.kinds[t.Server].handoff:
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': a workflow has no "+
				"conversation that could be handed over", st.ID, f.Name)
		}
		names[st.ID], called[st.ID] = t.Name, t
	}
	return s, names, h.checkPorts(f, called)
}

// findStep finds the tool of a step: by server and remote name, or by its exposed name.
func findStep(s *catalog.Snapshot, st workflow.Step) *tenon.Tool {
	for _, t := range s.Tools() {
		if st.Server == "" && t.Name == st.Tool || st.Server != "" && t.Server == st.Server && t.Remote == st.Tool {
			return t
		}
	}
	return nil
}

func toolNames(s *catalog.Snapshot, server string) []string {
	var names []string
	for _, t := range s.Tools() {
		if server == "" {
			names = append(names, t.Name)
		} else if t.Server == server {
			names = append(names, t.Remote)
		}
	}
	return names
}

func nearest(s string, names []string) string {
	if n := tenon.Nearest(s, names); n != "" {
		return "; did you mean '" + n + "'?"
	}
	if len(names) == 0 {
		return ""
	}
	shown := names[:min(len(names), 20)]
	text := "; there are: " + strings.Join(shown, ", ")
	if len(names) > len(shown) {
		text += ", …"
	}
	return text
}

// workflowOutcome returns the outcome of a workflow's run for its caller.
func (h *Host) workflowOutcome(ctx context.Context, id string) (agent.Outcome, error) {
	done, sum, err := h.workflowDone(ctx, id)
	if err != nil {
		return agent.Outcome{}, err
	}
	o := agent.Outcome{Spent: &sum.Summary}
	if done.State != tenon.RunCompleted {
		cause := "the run was " + string(done.State)
		if done.Error != nil {
			cause = done.Error.Message
		}
		o.Result = tenon.ErrorResult(workflow.MessageFailed + cause)
		return o, nil
	}
	o.Result, o.Outputs = &tenon.Result{Content: []tenon.Content{tenon.Text(done.Answer)}}, sum.Outputs
	return o, nil
}

// workflowDone reads how the run of a workflow ended.
func (h *Host) workflowDone(ctx context.Context, id string) (done tenon.DoneData, sum workflow.Summary, err error) {
	row, err := h.store.Run(ctx, id)
	if err != nil {
		return done, sum, err
	}
	events, err := h.store.Events(ctx, id, row.Seq-1, 0)
	if err != nil {
		return done, sum, err
	}
	for _, e := range events {
		if e.Kind == tenon.EventDone {
			return view.Ended(e)
		}
	}
	return done, sum, tenon.Errorf(tenon.CodeConflict, "run %s has not ended", id)
}

// flowArguments reads the tables of a person's call of a workflow and makes the arguments for its schema.
func (h *Host) flowArguments(ctx context.Context, f *flow, c *ToolCall,
	spec *agent.DirectSpec) (args json.RawMessage, blobs [][]byte, err error) {
	if args = c.Arguments; len(args) == 0 {
		args = json.RawMessage("{}")
	}
	tables, data, err := h.takeTables(ctx, c.Inputs)
	if err != nil {
		return nil, nil, err
	}
	if err := f.CheckInputs(tables); err != nil {
		return nil, nil, err
	}
	if _, err := f.Params(args); err != nil {
		return nil, nil, err
	}
	if len(f.Inputs) == 0 {
		return args, nil, nil
	}
	for _, t := range tables {
		blobs = append(blobs, data[t.Digest])
	}
	spec.Inputs = tables
	return f.whole(args), blobs, nil
}

func (h workflowsHandle) Get(_ context.Context, name string) (Workflow, error) {
	f := h.flows.tools[name]
	if f == nil {
		return Workflow{}, tenon.Errorf(tenon.CodeNotFound, "there is no workflow '%s'", tenon.Visible(name))
	}
	return f.Workflow, nil
}
