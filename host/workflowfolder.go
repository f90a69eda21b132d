package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// besideStore returns the folder, next to the store, of the folders of workflow runs. It returns "" if runs have
// temporary folders.
func (h *Host) besideStore() string {
	path := h.cfg.shared()
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "workflows")
}

// workFolder returns the folder for the data of a workflow run and, in debug mode, for the inputs of its steps. It is
// next to the store, otherwise temporary.
func (h *Host) workFolder(run string) (string, error) {
	name := strings.ReplaceAll(run, "/", "=")
	beside := h.besideStore()
	if beside == "" {
		dir, err := os.MkdirTemp("", "tenon-"+name+"-")
		if err != nil {
			return "", tenon.Errorf(tenon.CodeStore, "there is no place for the data of the workflow: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(filepath.Join(beside, name))
	if err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "there is no place for the data of the workflow: %w", err)
	}
	return dir, nil
}

// dropFolder removes the temporary folder of a run that did not begin. A folder next to the store is created only when
// a step needs it, and may belong to another process that began the same run.
func (h *Host) dropFolder(folder string) {
	if folder == "" || h.besideStore() != "" {
		return
	}
	if err := os.RemoveAll(folder); err != nil {
		h.log.Warn("the folder of a workflow that did not begin was not removed", "folder", folder, "error", err)
	}
}

// dataFolder returns the path of the workflow's data in the folder of a run.
func dataFolder(spec *workflow.Spec) string { return filepath.Join(spec.Folder, "data") }

// needFolder makes sure that the data of a workflow's run exist before a step reads them: at the first step, and if
// somebody removed them.
func (h *Host) needFolder(ctx context.Context, row tenon.Run) error {
	if row.Core != workflow.Version {
		return nil
	}
	spec, err := h.flowSpec(ctx, row.ID)
	if err != nil || spec.Folder == "" {
		return err
	}
	p, err := h.packOf(ctx, spec.Workflow)
	if err != nil || p.w.Data == "" {
		return err
	}
	h.flows.folders.Lock()
	defer h.flows.folders.Unlock() // the first step of the run unpacks for all
	if _, err := os.Stat(dataFolder(&spec)); err == nil {
		return nil
	}
	if err := p.pack.Extract(p.w.Data, dataFolder(&spec)); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the data of workflow '%s' cannot be unpacked: %w", p.w.Name, err)
	}
	return nil
}

// leaveFlow cancels the runs that a workflow called and removes its folder. In debug mode the folder of a failed run
// stays.
func (h *Host) leaveFlow(ctx context.Context, row tenon.Run) {
	children, err := h.store.Runs(ctx, store.RunFilter{Caller: row.ID, Limit: maxListed})
	for _, c := range children {
		if !c.State.Ended() {
			if err := h.Runs().Cancel(ctx, c.ID, "the workflow that called this run has ended"); err != nil {
				h.log.Warn("a run that a workflow called was not cancelled", "run", c.ID, "error", err)
			}
		}
	}
	var spec workflow.Spec
	if err == nil {
		spec, err = h.flowSpec(ctx, row.ID)
	}
	switch {
	case err != nil:
	case spec.Folder == "":
	case spec.Debug && row.State == tenon.RunFailed:
		err = h.layOut(ctx, row, &spec)
	default:
		err = os.RemoveAll(spec.Folder)
	}
	if err != nil {
		h.log.Warn("the folder of a workflow's run could not be cleaned up", "run", row.ID, "error", err)
	}
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	delete(h.flows.specs, row.ID)
	delete(h.flows.digests, row.ID)
}

// sweepFlows cleans up the folders of ended workflows whose process died before it could. It leaves folders that belong
// to no known run.
func (h *Host) sweepFlows(ctx context.Context) {
	beside := h.besideStore()
	if beside == "" {
		return
	}
	entries, err := os.ReadDir(beside)
	if err != nil {
		return // no workflow had a folder
	}
	for _, e := range entries {
		row, err := h.store.Run(ctx, strings.ReplaceAll(e.Name(), "=", "/"))
		if err != nil || row.Core != workflow.Version || !row.State.Ended() {
			continue
		}
		if spec, err := h.flowSpec(ctx, row.ID); err == nil && !(spec.Debug && row.State == tenon.RunFailed) {
			h.leaveFlow(ctx, row)
		}
	}
}

// layOut writes the inputs of a failed run's steps into its folder.
func (h *Host) layOut(ctx context.Context, row tenon.Run, spec *workflow.Spec) error {
	events, err := h.Runs().Open(row.ID).Journal(ctx, 0, 0)
	if err != nil {
		return err
	}
	steps := filepath.Join(spec.Folder, "steps")
	if err := os.MkdirAll(steps, 0o700); err != nil {
		return err
	}
	write := func(name string, v any) error {
		var b bytes.Buffer
		if err := json.Indent(&b, encode(v), "", "  "); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(spec.Folder, name), append(b.Bytes(), '\n'), 0o600)
	}
	if err := write("parameters.json", json.RawMessage(policy.Mask(spec.Params, h.redacts))); err != nil {
		return err
	}
	tables := maps.Clone(spec.Inputs)
	if tables == nil {
		tables = map[string]tenon.Table{}
	}
	for _, e := range events {
		switch e.Kind {
		case workflow.EventPlanned:
			err = write(filepath.Join("steps", e.Step+".json"), e.Data)
		case agent.EventResult:
			if o := view.As[agent.Outcome](e); len(o.Outputs) > 0 {
				tables[e.Step] = o.Outputs[0]
			}
		case agent.EventFailed, tenon.EventUnknown:
			err = write(filepath.Join("steps", e.Step+".error.json"), e.Data)
		}
		if err != nil {
			return err
		}
	}
	for name, t := range tables {
		b, err := h.store.Blob(ctx, t.Digest)
		if err == nil {
			err = os.WriteFile(filepath.Join(spec.Folder, name+".arrow"), b, 0o600)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}
