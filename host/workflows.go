package host

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
	"github.com/tenonhq/tenon/workflow/runner"
)

// Workflow is a workflow that is offered as a tool: the file and the data with it, as [config.ReadWorkflow] returns
// them.
type Workflow = runner.Workflow

// workflows are the workflows of a host: the workflows that are tools, by name, and the workflows of runs.
type workflows struct {
	tools map[string]*runner.Flow
	*runner.Runner
}

// openRunner makes the runner, after the store is open.
func (h *Host) openRunner() {
	folder := h.cfg.shared() // next to the store; runs of a store in memory have temporary folders
	if folder != "" {
		folder = filepath.Join(filepath.Dir(folder), "workflows")
	}
	h.flows.Runner = runner.New(runner.Config{Store: h.store, Logger: h.log, Folder: folder, Redact: h.redacts,
		Unpack: config.UnpackWorkflow, Requests: h.openRequests, Heads: h.heads, Tools: h.toolsOf,
		HasSecret: func(digest, name string) bool { return h.config.HasSecret(h.entryOf(digest), name) },
		Stored:    storedDigests{h},
		Start:     func(ctx context.Context, e engine.Spec) error { return h.launch(ctx, e) },
		Cancel:    func(ctx context.Context, run, reason string) error { return h.Runs().Cancel(ctx, run, reason) }})
}

// storedDigests implements [runner.Digests].
type storedDigests struct{ h *Host }

func (d storedDigests) Has(digest string) bool { return d.h.isStored(digest) }
func (d storedDigests) Add(digest string)      { d.h.markStored(digest) }

// openRequests opens the HTTP requests of a workflow's steps. It returns nil if it has none.
func (h *Host) openRequests(w *workflow.Workflow) (runner.Requests, error) {
	requests := map[string]catalog.Tool{}
	for _, st := range w.Steps {
		if st.HTTP != nil {
			requests[w.Name+"."+st.ID] = catalog.Tool{Request: *st.HTTP}
		}
	}
	if len(requests) == 0 {
		return nil, nil
	}
	templates, err := policy.NewTemplates()
	if err != nil {
		return nil, err
	}
	t, err := h.openHTTPTools(templates, requests)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// openWorkflows reads the workflows that are tools.
func (h *Host) openWorkflows() error {
	h.flows.tools = map[string]*runner.Flow{}
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
		h.flows.tools[name] = runner.NewFlow(Workflow{Workflow: w, Pack: pack})
	}
	for name, w := range h.config.TableWorkflows() {
		h.flows.tools[name] = runner.NewFlow(Workflow{Workflow: w.Workflow, Pack: w.Pack, Description: w.Description,
			Foreign: true})
	}
	for name, w := range h.cfg.Workflows {
		if err := w.Check(); err != nil {
			return err
		}
		for _, st := range w.Workflow.Steps {
			if _, err := h.config.Agent(st.Agent); st.Agent != "" && err != nil {
				return tenon.Errorf(tenon.CodeConfig, "step '%s' of workflow '%s': %w", st.ID, name, err)
			}
		}
		if h.flows.tools[name] != nil {
			return tenon.Errorf(tenon.CodeConfig, "there are two workflows '%s'", name)
		}
		h.flows.tools[name] = runner.NewFlow(w)
	}
	var list []tenon.Tool
	for _, name := range slices.Sorted(maps.Keys(h.flows.tools)) {
		f := h.flows.tools[name]
		list = append(list, tenon.Tool{Remote: name, Kind: tenon.KindWorkflow, Description: f.Describe(),
			Input: f.CallSchema()})
	}
	if len(list) > 0 {
		h.addTools(catalog.WorkflowServer, list)
	}
	return nil
}

// toolsOf returns the tools that the steps of a workflow call: step -> exposed name. Without such steps it asks no
// server.
func (h *Host) toolsOf(ctx context.Context, f *runner.Flow) (*catalog.Snapshot, map[string]string, error) {
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
			// The error lists only configured servers, because tenon's own do not help the user.
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
	h.remember(s.Digest(), s)
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

// flowArguments reads the tables of a person's call of a workflow into the spec, and makes the
// arguments for its schema.
func (h *Host) flowArguments(ctx context.Context, f *runner.Flow, c *ToolCall,
	spec *agent.DirectSpec, begin *engine.Spec) (args json.RawMessage, err error) {
	if args = c.Arguments; len(args) == 0 {
		args = json.RawMessage("{}")
	}
	tables, _, list, err := h.takeTables(ctx, c.Inputs, c.Files)
	if err != nil {
		return nil, err
	}
	if err := f.CheckInputs(tables); err != nil {
		return nil, err
	}
	if _, err := f.Params(args); err != nil {
		return nil, err
	}
	if len(f.Inputs) == 0 {
		return args, nil
	}
	for _, t := range list {
		if t.Data != nil {
			begin.Blobs = append(begin.Blobs, t.Data)
		}
	}
	spec.Inputs, begin.Late = tables, h.late(list)
	return f.Arguments(args), nil
}

func (h workflowsHandle) Get(_ context.Context, name string) (Workflow, error) {
	f := h.host.flows.tools[name]
	if f == nil {
		return Workflow{}, tenon.Errorf(tenon.CodeNotFound, "there is no workflow '%s'", tenon.Visible(name))
	}
	return f.Workflow, nil
}
