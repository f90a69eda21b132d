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
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/workflow"
)

// Workflow is a workflow as a tool: the file and what goes with it, as
// [config.ReadWorkflow] gives them.
type Workflow struct {
	*workflow.Workflow
	Pack *workflow.Pack
	// Description is told to models in place of the file's; empty: the file's.
	Description string
	// Foreign says that it came with a table: what it says of itself counts for nothing.
	Foreign bool
}

// check refuses what a program has made only half of.
func (w Workflow) check() error {
	if w.Workflow == nil || w.Pack == nil {
		return tenon.Errorf(tenon.CodeConfig, "a workflow needs its file and its pack: take both from config.ReadWorkflow")
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
	once := sync.OnceValues(func() ([]byte, error) { return w.Pack.Zip() })
	f.zip = func() ([]byte, string, error) {
		b, err := once()
		return b, digestOf(b), err
	}
	return f
}

// workflows are the workflows of a host: those that are tools, by name, and those of
// runs, by the digests of their packs.
type workflows struct {
	tools map[string]*flow

	mu    sync.Mutex
	packs map[string]*packed
	specs map[string]workflow.Spec // of runs at work, which every step looks at; nobody changes them

	folders sync.Mutex // held while data are laid out, which takes longer than to look into maps
}

// packed is a workflow as a run has it.
type packed struct {
	w    *workflow.Workflow
	pack *workflow.Pack
	http *httpTools // of its steps
}

// maxPacked bounds the workflows that are kept in memory for runs, and the specs of runs;
// maxSpec is up to how many bytes one of those is kept.
const (
	maxPacked = 256
	maxSpec   = 64 << 10
)

// openWorkflows reads the workflows that are tools.
func (h *Host) openWorkflows() error {
	h.flows.tools, h.flows.packs, h.flows.specs = map[string]*flow{}, map[string]*packed{}, map[string]workflow.Spec{}
	for _, name := range slices.Sorted(maps.Keys(h.config.Tools)) {
		t := h.config.Tools[name]
		if t.Kind != tenon.KindWorkflow || !t.IsEnabled() {
			continue
		}
		w, pack, err := config.ReadWorkflow(t.Path)
		if err != nil {
			return tenon.Errorf(tenon.CodeConfig, "tools.%s.path: %w", name, err)
		}
		h.flows.tools[name] = newFlow(Workflow{Workflow: w, Pack: pack})
	}
	for name, w := range h.config.TableWorkflows() {
		h.flows.tools[name] = newFlow(Workflow{Workflow: w.Workflow, Pack: w.Pack, Description: w.Description, Foreign: true})
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
	if len(h.flows.tools) > 0 {
		h.toolsets[catalog.WorkflowServer] = workflowTools{h}
	}
	return nil
}

// workflowTools is the toolset of the workflows. Their calls are runs of their own,
// which the core begins, so that nobody calls them here.
type workflowTools struct{ h *Host }

// Tools implements [tenon.Toolset].
func (t workflowTools) Tools(context.Context) ([]tenon.Tool, error) {
	var list []tenon.Tool
	for _, name := range slices.Sorted(maps.Keys(t.h.flows.tools)) {
		f := t.h.flows.tools[name]
		list = append(list, tenon.Tool{Remote: name, Kind: tenon.KindWorkflow, Description: f.describe(), Input: f.schema()})
	}
	return list, nil
}

// Call implements [tenon.Toolset].
func (t workflowTools) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return nil, tenon.Errorf(tenon.CodeInternal, "workflow '%s' was called as if it were a tool of a server", c.Tool)
}

// describe is what a model is told: what the workflow does, and its tables.
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

// schema is the schema of a call: the parameters; where the workflow takes tables as
// well, the parameters as configuration, and the tables' ids as data_inputs.
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
		about := map[string]any{"type": []string{"integer", "string"}, "description": "Id of the table in the data repository: " + in.Description}
		ports = append(ports, string(encode(in.Name))+":"+string(encode(about)))
		names = append(names, in.Name)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s"data_inputs":{"type":"object","properties":{%s},"required":%s,"additionalProperties":false}},"required":%s,"additionalProperties":false}`,
		props, strings.Join(ports, ","), encode(names), encode(append(required, "data_inputs")))
}

// whole makes the arguments that the schema wants of the parameters alone; the tables
// come beside them, so that their ids are only places.
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

// split takes the arguments of a call apart: the parameters, and the ids of tables by
// port.
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

// beginWorkflow makes what a run of the workflow begins with. Errors: invalid (parameters,
// tables, a tool that is not there), and those of connecting.
func (h *Host) beginWorkflow(ctx context.Context, f *flow, run string, params json.RawMessage, inputs map[string]tenon.Table, blobs map[string][]byte) (spec workflow.Spec, s *catalog.Snapshot, pack []byte, err error) {
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

// checkSecrets refuses a workflow whose requests want secrets that there are not, and one of a
// table whose requests would take those of the configuration along: nobody knows where to.
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
				_, ok := h.config.Secrets[secret]
				switch {
				case f.Foreign:
					return tenon.Errorf(tenon.CodeDenied, "workflow '%s' came with a table, and the header %s of its step '%s' wants the secret '%s'; unpack the workflow, look at it, and make it a tool of the configuration",
						f.Name, header, step, secret)
				case !ok:
					return tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': the header %s wants the secret '%s', and there is no entry of this name in secrets", step, f.Name, header, tenon.Visible(secret))
				}
			}
		}
	}
	return nil
}

// toolsOf finds the tools that the steps of a workflow call: step -> exposed name.
// Without such a step no server is asked.
func (h *Host) toolsOf(ctx context.Context, f *flow) (*catalog.Snapshot, map[string]string, error) {
	var servers []string
	calls, any := 0, false
	sets := h.sets()
	for _, st := range f.Steps {
		if st.Agent != "" {
			if _, err := h.config.Agent(st.Agent); err != nil {
				return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': %w", st.ID, f.Name, err)
			}
		}
		if st.Tool == "" {
			continue
		}
		calls++
		if any = any || st.Server == ""; st.Server == "" || slices.Contains(servers, st.Server) {
			continue
		}
		if sets[st.Server] == nil {
			// Those that somebody configured: tenon's own are no help here.
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), isReserved)
			text := nearest(st.Server, names)
			switch {
			case isReserved(st.Server): // no tool of its kind is configured
				return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no tool '%s' under tools in tenon.yaml, as '%s' stands for", st.ID, f.Name, tenon.Visible(st.Tool), st.Server)
			case len(names) == 0:
				text = "; add it to servers in tenon.yaml: tenon servers add " + tenon.Visible(st.Server) + " -- COMMAND"
			}
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no server '%s'%s", st.ID, f.Name, tenon.Visible(st.Server), text)
		}
		servers = append(servers, st.Server)
	}
	if calls == 0 {
		return nil, nil, nil
	}
	if any {
		servers = slices.DeleteFunc(slices.Sorted(maps.Keys(sets)), isOwn)
	}
	s, problems, err := h.Tools(ctx, servers...)
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
			return nil, nil, tenon.Errorf(tenon.ErrorCode(problems[0].Err), "step '%s' of workflow '%s': there is no tool '%s': %w", st.ID, f.Name, tenon.Visible(st.Tool), problems[0].Err)
		case t == nil:
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': there is no tool '%s'%s", st.ID, f.Name, tenon.Visible(st.Tool), nearest(st.Tool, toolNames(s, st.Server)))
		case t.Server == handoffServer:
			return nil, nil, tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': a workflow has no conversation that could be handed over", st.ID, f.Name)
		}
		names[st.ID], called[st.ID] = t.Name, t
	}
	return s, names, h.checkPorts(f, called)
}

// findStep finds the tool of a step: by server and remote name, or as models call it.
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

// planned is the event of a command that plans a step of a workflow: there is nothing
// left to decide.
func planned(a engine.Attempt) (tenon.Event, bool) {
	if _, call := a.Local.(*agent.DecideCommand); call || a.Row.Core != workflow.Version {
		return tenon.Event{}, false
	}
	p, err := tenon.CommandData[workflow.PlanCommand](a.Command)
	if err != nil || p.Plan == nil {
		return tenon.Event{}, false
	}
	return tenon.Event{Step: a.Step, Kind: workflow.EventPlanned, Data: encode(p.Plan)}, true
}

// workflowOutcome is what the run of a workflow came to, as its caller sees it.
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
			if err := json.Unmarshal(e.Data, &done); err != nil {
				return done, sum, tenon.Errorf(tenon.CodeStore, "run %s: its end cannot be read: %w", id, err)
			}
			_ = json.Unmarshal(done.Data, &sum) // a run that was ended without its core has none
			return done, sum, nil
		}
	}
	return done, sum, tenon.Errorf(tenon.CodeConflict, "run %s has not ended", id)
}

var _ tenon.Toolset = workflowTools{}

// flowArguments takes the tables of a person's call of a workflow and makes the arguments
// that its schema wants.
func (h *Host) flowArguments(ctx context.Context, name string, c *ToolCall, spec *agent.DirectSpec) (args json.RawMessage, blobs [][]byte, err error) {
	f := h.flows.tools[name]
	if f == nil {
		return nil, nil, tenon.Errorf(tenon.CodeNotFound, "there is no workflow '%s' any more", name)
	}
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

// Workflow returns the workflow that is a tool of this name.
func (h *Host) Workflow(name string) (Workflow, bool) {
	f := h.flows.tools[name]
	if f == nil {
		return Workflow{}, false
	}
	return f.Workflow, true
}
