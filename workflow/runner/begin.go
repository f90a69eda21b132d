package runner

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store/pieces"
	"github.com/tenonhq/tenon/workflow"
)

// Begun is a run that is ready to be started. The caller completes its spec.
type Begun struct {
	Spec   workflow.Spec
	tools  *catalog.Snapshot // nil if no step calls a tool
	pack   []byte
	tables map[string]Given // by digest
}

// Given is an input table that the store may not have yet.
type Given struct {
	// Data are the bytes of the table, which are stored with the run. If nil, the caller stores the table in pieces
	// when the run has begun.
	Data []byte
	In   *io.SectionReader // the bytes, in any case
}

// Begin prepares a run of a workflow with the id run. tables contains, by digest, the input tables that may be missing
// in the store. Errors: invalid (parameters, tables, a missing tool, a missing secret), denied, errors of connecting.
func (r *Runner) Begin(ctx context.Context, f *Flow, run string, params json.RawMessage,
	inputs map[string]tenon.Table, tables map[string]Given) (*Begun, error) {
	b := &Begun{Spec: workflow.Spec{Name: f.Name, Inputs: inputs, Foreign: f.Foreign}, tables: tables}
	var err error
	if b.Spec.Params, err = f.Params(params); err != nil {
		return nil, err
	}
	if err = f.CheckInputs(inputs); err != nil {
		return nil, err
	}
	if b.Spec.Heads, err = r.c.Heads(ctx, inputs, tables); err != nil {
		return nil, err
	}
	if b.tools, b.Spec.Names, err = r.c.Tools(ctx, f); err != nil {
		return nil, err
	}
	if b.tools != nil {
		b.Spec.Tools = b.tools.Digest()
	}
	if b.pack, b.Spec.Workflow, err = f.Zip(); err != nil {
		return nil, err
	}
	if err = r.Keep(b.Spec.Workflow, f.Workflow.Workflow, f.Pack); err != nil {
		return nil, err
	}
	if err = r.checkSecrets(ctx, f, b.Spec.Workflow); err != nil {
		return nil, err
	}
	if f.Data != "" {
		b.Spec.Folder, err = r.NewFolder(run)
	}
	return b, err
}

// checkSecrets refuses a workflow whose requests need secrets that do not exist. It also refuses a workflow of a tool
// table if its requests would send secrets of the configuration, because the author of the table chose the addresses.
func (r *Runner) checkSecrets(ctx context.Context, f *Flow, digest string) error {
	p, err := r.Stored(ctx, digest)
	if err != nil || p.Requests == nil {
		return err
	}
	for _, s := range p.Requests.Secrets() {
		step := strings.TrimPrefix(s.Tool, f.Name+".")
		switch {
		case f.Foreign:
			return tenon.Errorf(tenon.CodeDenied, "workflow '%s' came with a table, and the header %s of its step "+
				"'%s' wants the secret '%s'; unpack the workflow, look at it, and make it a tool of the configuration",
				f.Name, s.Header, step, s.Name)
		case !r.c.HasSecret(digest, s.Name):
			return tenon.Errorf(tenon.CodeInvalid, "step '%s' of workflow '%s': the header %s wants the secret '%s', "+
				"and there is no entry of this name in secrets", step, f.Name, s.Header, tenon.Visible(s.Name))
		}
	}
	return nil
}

// Start begins a run and stores everything that it needs in the same commit. It only refers to data that the store
// already has.
func (r *Runner) Start(ctx context.Context, e engine.Spec, b *Begun) (err error) {
	spec, s, pack, tables := &b.Spec, b.tools, b.pack, b.tables
	if spec.Debug && spec.Folder == "" {
		if spec.Folder, err = r.NewFolder(e.Run.ID); err != nil {
			return err
		}
	}
	e.Data = tenon.EventData(spec)
	var own []string // inputs that the store already has
	for _, t := range spec.Inputs {
		if g, ok := tables[t.Digest]; !ok {
			uses, err := pieces.Of(ctx, r.c.Store, t)
			if err != nil {
				return err
			}
			own = append(own, uses...)
		} else if g.Data != nil {
			e.Blobs = append(e.Blobs, g.Data)
		}
	}
	e.Uses = own
	base := e.Blobs
	if s != nil && r.c.Stored.Has(spec.Tools) {
		e.Uses = append(slices.Clip(e.Uses), spec.Tools)
	} else if s != nil {
		e.Blobs = append(slices.Clip(e.Blobs), s.Encode())
	}
	if r.c.Stored.Has(spec.Workflow) {
		e.Uses = append(slices.Clip(e.Uses), spec.Workflow)
	} else {
		e.Blobs = append(slices.Clip(e.Blobs), pack)
	}
	err = r.c.Start(ctx, e)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && len(e.Uses) > len(own) {
		// The referenced data were deleted with their runs in the meantime.
		e.Uses, e.Blobs = own, append(slices.Clip(base), pack)
		if s != nil {
			e.Blobs = append(e.Blobs, s.Encode())
		}
		err = r.c.Start(ctx, e)
	}
	if err != nil {
		r.DropFolder(spec.Folder)
		return err
	}
	r.c.Stored.Add(spec.Workflow)
	if s != nil {
		r.c.Stored.Add(spec.Tools)
	}
	return nil
}
