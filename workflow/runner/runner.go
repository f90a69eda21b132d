// Package runner begins workflow runs and keeps their data: the workflows that they run, their specs and folders, and
// how they ended.
//
//	host (offers workflows as tools) ──► runner.Begin, Start ──► engine ──► runner.Core
//	                                        └──► store, folders of runs next to it
//
// A run names its workflow by the digest of its pack, which the store has as a blob. The runner caches packs, specs and
// digests, because every step of a run needs them. It unpacks the data of a workflow before the first step that reads
// them, and removes them when the run has ended.
//
// Everything that the runner needs is a field of [Config]. It knows neither the host nor the engine that uses it.
package runner

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// Config contains the dependencies of a runner. All fields except Folder and Redact are required.
type Config struct {
	Store  store.Store
	Logger *slog.Logger
	// Folder contains the folders of runs. If empty, runs have temporary folders.
	Folder string
	// Redact contains the names of values that are hidden in the files of a failed run.
	Redact []string
	// Unpack reads the zip of a workflow. name is its name in errors.
	Unpack func(name string, zip []byte) (*workflow.Workflow, *workflow.Pack, error)
	// Requests opens the HTTP requests of a workflow's steps. It returns nil if no step is a request.
	Requests func(*workflow.Workflow) (Requests, error)
	// Heads returns the first rows of the inputs of a workflow. It gets, by digest, the tables that may be missing in
	// the store.
	Heads func(ctx context.Context, inputs map[string]tenon.Table,
		tables map[string]Given) (map[string]json.RawMessage, error)
	// Tools returns the tools that the steps of a workflow call, and their names by step. It returns nil if no step
	// calls a tool.
	Tools func(ctx context.Context, f *Flow) (*catalog.Snapshot, map[string]string, error)
	// HasSecret reports whether a secret exists for the workflow whose pack has this digest.
	HasSecret func(digest, name string) bool
	// Stored contains the digests of blobs that the store has.
	Stored Digests
	// Start begins a run: see [engine.Engine].
	Start func(context.Context, engine.Spec) error
	// Cancel cancels a run.
	Cancel func(ctx context.Context, run, reason string) error
}

// Digests is a set of digests of blobs that the store has or had. A blob may have been deleted since.
type Digests interface {
	Has(digest string) bool
	Add(digest string)
}

// Requests are the HTTP requests of a workflow's steps. Each is a tool with the name WORKFLOW.STEP.
type Requests interface {
	// Toolset returns the tools for the workflow of a configuration entry, such as tools.report. The entry determines
	// which secrets they may use.
	Toolset(entry string) tenon.Toolset
	// Address returns the template of a tool's address, or "" if there is no such tool.
	Address(tool string) string
	// Secrets returns the secrets in the headers of the tools, in order.
	Secrets() []Secret
	Close()
}

// Secret is a secret in a header of a request.
type Secret struct {
	Tool   string // WORKFLOW.STEP
	Header string
	Name   string // in the configuration
}

// Runner keeps the data of workflow runs. Its methods may be called at the same time.
type Runner struct {
	c Config

	mu    sync.Mutex
	packs map[string]*Packed
	specs map[string]workflow.Spec // specs of current runs; read by every step and never changed
	// digests maps runs at work to the digests of their packs.
	digests map[string]string

	folders sync.Mutex // held while data are unpacked, which takes too long for mu
}

// Packed is the workflow of a run.
type Packed struct {
	Workflow *workflow.Workflow
	Pack     *workflow.Pack
	Requests Requests // nil if no step has one
}

// The bounds of the caches. maxPacked bounds the workflows and specs, maxSpec the bytes of a cached spec, and
// maxDigests the digests.
const (
	maxPacked  = 256
	maxSpec    = 64 << 10
	maxDigests = 4096
)

// New returns a runner.
func New(c Config) *Runner {
	return &Runner{c: c, packs: map[string]*Packed{}, specs: map[string]workflow.Spec{}, digests: map[string]string{}}
}

// Core creates the core of a workflow's run; see [engine.NewCore]. Errors: store.
func (r *Runner) Core(ctx context.Context, e engine.Spec) (tenon.Core, error) {
	spec, err := view.SpecOf[workflow.Spec](e)
	if err != nil {
		return nil, err
	}
	p, err := r.Stored(ctx, spec.Workflow)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	if len(r.digests) >= maxDigests {
		clear(r.digests)
	}
	r.digests[e.Run.ID] = spec.Workflow
	r.mu.Unlock()
	return workflow.New(p.Workflow, spec)
}

// Stored returns the workflow of a run by the digest of its pack. Errors: not_found, store.
func (r *Runner) Stored(ctx context.Context, digest string) (*Packed, error) {
	r.mu.Lock()
	p := r.packs[digest]
	r.mu.Unlock()
	if p != nil {
		return p, nil
	}
	b, err := r.c.Store.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	w, pack, err := r.c.Unpack("the stored workflow", b)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "a workflow that was stored cannot be read by this version of "+
			"tenon: %w", err)
	}
	if err := r.Keep(digest, w, pack); err != nil {
		return nil, err
	}
	return r.Stored(ctx, digest)
}

// Keep caches a workflow for later runs.
func (r *Runner) Keep(digest string, w *workflow.Workflow, pack *workflow.Pack) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packs[digest] != nil {
		return nil
	}
	requests, err := r.c.Requests(w)
	if err != nil {
		return err
	}
	if len(r.packs) >= maxPacked {
		for k, old := range r.packs { // drop an arbitrary one; it is read again when needed
			delete(r.packs, k)
			old.close()
			break
		}
	}
	r.packs[digest] = &Packed{w, pack, requests}
	return nil
}

// Close closes the connections of HTTP steps.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.packs {
		p.close()
	}
}

func (p *Packed) close() {
	if p.Requests != nil {
		p.Requests.Close()
	}
}

// Spec returns the spec of a workflow's run.
func (r *Runner) Spec(ctx context.Context, run string) (workflow.Spec, error) {
	r.mu.Lock()
	spec, ok := r.specs[run]
	r.mu.Unlock()
	if ok {
		return spec, nil
	}
	events, err := r.c.Store.Events(ctx, run, 0, 1)
	if err != nil {
		return spec, err
	}
	if _, spec, err = view.FirstSpec[workflow.Spec](run, events); err != nil {
		return spec, err
	}
	if len(events[0].Data) <= maxSpec {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.specs) >= maxPacked {
			clear(r.specs)
		}
		r.specs[run] = spec
	}
	return spec, nil
}

// Digest returns the digest of a run's workflow. It also works for a run that is not stored yet.
func (r *Runner) Digest(ctx context.Context, run string) (string, error) {
	r.mu.Lock()
	digest, ok := r.digests[run]
	r.mu.Unlock()
	if ok {
		return digest, nil
	}
	spec, err := r.Spec(ctx, run)
	return spec.Workflow, err
}

// Outcome returns the outcome of a workflow's run for its caller.
func (r *Runner) Outcome(ctx context.Context, id string) (agent.Outcome, error) {
	done, sum, err := r.Done(ctx, id)
	if err != nil {
		return agent.Outcome{}, err
	}
	o := agent.Outcome{Spent: &sum.Summary}
	if done.State != tenon.RunCompleted {
		cause := "the run was " + string(done.State)
		if done.Error != nil {
			cause = done.Error.Message
		}
		o.Result, o.Unknown = tenon.ErrorResult(workflow.MessageFailed+cause), sum.Unknown
		return o, nil
	}
	o.Result, o.Outputs = &tenon.Result{Content: []tenon.Content{tenon.Text(done.Answer)}}, sum.Outputs
	return o, nil
}

// Done returns the end of a workflow's run. Errors: conflict (it has not ended), not_found, store.
func (r *Runner) Done(ctx context.Context, id string) (done tenon.DoneData, sum workflow.Summary, err error) {
	row, err := r.c.Store.Run(ctx, id)
	if err != nil {
		return done, sum, err
	}
	events, err := r.c.Store.Events(ctx, id, row.Seq-1, 0)
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
