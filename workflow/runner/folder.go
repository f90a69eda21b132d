package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/pieces"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// maxChildren bounds the runs of a workflow that are cancelled when it ends.
const maxChildren = 10_000

// NewFolder returns the path of a folder for the data of a workflow run and, in debug mode, for the inputs of its
// steps. The folder is next to the store if possible, otherwise in the folder for temporary files.
func (r *Runner) NewFolder(run string) (string, error) {
	name := strings.ReplaceAll(run, "/", "=")
	if r.c.Folder == "" {
		dir, err := os.MkdirTemp("", "tenon-"+name+"-")
		if err != nil {
			return "", tenon.Errorf(tenon.CodeStore, "there is no place for the data of the workflow: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(filepath.Join(r.c.Folder, name))
	if err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "there is no place for the data of the workflow: %w", err)
	}
	return dir, nil
}

// DropFolder removes the temporary folder of a run that did not begin. It keeps a folder next to the store, because
// such a folder is created only when a step needs it, and another process may have begun the same run.
func (r *Runner) DropFolder(folder string) {
	if folder == "" || r.c.Folder != "" {
		return
	}
	if err := os.RemoveAll(folder); err != nil {
		r.c.Logger.Warn("the folder of a workflow that did not begin was not removed", "folder", folder, "error", err)
	}
}

// DataFolder returns the path of the workflow's data in the folder of a run.
func DataFolder(spec *workflow.Spec) string { return filepath.Join(spec.Folder, "data") }

// Unpack creates the data of a workflow's run before a step reads them. It does so at the first step, and again if
// somebody removed the data.
func (r *Runner) Unpack(ctx context.Context, row tenon.Run) error {
	if row.Core != workflow.Version {
		return nil
	}
	spec, err := r.Spec(ctx, row.ID)
	if err != nil || spec.Folder == "" {
		return err
	}
	p, err := r.Stored(ctx, spec.Workflow)
	if err != nil || p.Workflow.Data == "" {
		return err
	}
	r.folders.Lock()
	defer r.folders.Unlock() // the first step of the run unpacks for all
	if _, err := os.Stat(DataFolder(&spec)); err == nil {
		return nil
	}
	if err := p.Pack.Extract(p.Workflow.Data, DataFolder(&spec)); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the data of workflow '%s' cannot be unpacked: %w", p.Workflow.Name, err)
	}
	return nil
}

// Leave cancels the runs that a workflow called, and removes its folder. In debug mode it keeps the folder of a failed
// run.
func (r *Runner) Leave(ctx context.Context, row tenon.Run) {
	children, err := r.c.Store.Runs(ctx, store.RunFilter{Caller: row.ID, Limit: maxChildren})
	for _, c := range children {
		if !c.State.Ended() {
			if err := r.c.Cancel(ctx, c.ID, "the workflow that called this run has ended"); err != nil {
				r.c.Logger.Warn("a run that a workflow called was not cancelled", "run", c.ID, "error", err)
			}
		}
	}
	var spec workflow.Spec
	if err == nil {
		spec, err = r.Spec(ctx, row.ID)
	}
	switch {
	case err != nil:
	case spec.Folder == "":
	case spec.Debug && row.State == tenon.RunFailed:
		err = r.layOut(ctx, row, &spec)
	default:
		err = os.RemoveAll(spec.Folder)
	}
	if err != nil {
		r.c.Logger.Warn("the folder of a workflow's run could not be cleaned up", "run", row.ID, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.specs, row.ID)
	delete(r.digests, row.ID)
}

// Sweep cleans up the folders of ended workflows whose process died before it could do so. It keeps folders that belong
// to no known run.
func (r *Runner) Sweep(ctx context.Context) {
	if r.c.Folder == "" {
		return
	}
	entries, err := os.ReadDir(r.c.Folder)
	if err != nil {
		return // no workflow had a folder
	}
	for _, e := range entries {
		row, err := r.c.Store.Run(ctx, strings.ReplaceAll(e.Name(), "=", "/"))
		if err != nil || row.Core != workflow.Version || !row.State.Ended() {
			continue
		}
		if spec, err := r.Spec(ctx, row.ID); err == nil && !(spec.Debug && row.State == tenon.RunFailed) {
			r.Leave(ctx, row)
		}
	}
}

// layOut writes the inputs of a failed run's steps into its folder.
func (r *Runner) layOut(ctx context.Context, row tenon.Run, spec *workflow.Spec) error {
	events, err := r.c.Store.Events(ctx, row.ID, 0, 0)
	if err != nil {
		return err
	}
	events = policy.MaskEvents(events, r.c.Redact)
	steps := filepath.Join(spec.Folder, "steps")
	if err := os.MkdirAll(steps, 0o700); err != nil {
		return err
	}
	write := func(name string, v any) error {
		var b bytes.Buffer
		if err := json.Indent(&b, tenon.EventData(v), "", "  "); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(spec.Folder, name), append(b.Bytes(), '\n'), 0o600)
	}
	if err := write("parameters.json", json.RawMessage(policy.Mask(spec.Params, r.c.Redact))); err != nil {
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
		if err := r.layTable(ctx, t, filepath.Join(spec.Folder, name+".arrow")); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// layTable writes a table to a file.
func (r *Runner) layTable(ctx context.Context, t tenon.Table, path string) error {
	in, err := pieces.OpenTable(ctx, r.c.Store, t)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
