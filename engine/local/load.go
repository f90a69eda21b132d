package local

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// acquire takes the lease of the run. It retries until patience is over.
func (d *driver) acquire(ctx context.Context, patience time.Duration) (bool, error) {
	for deadline := time.Now().Add(patience); ; {
		release, ok, err := d.e.c.Store.Acquire(d.id)
		if err != nil {
			return false, err
		}
		if ok {
			d.release = release
			return true, nil
		}
		if !time.Now().Before(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, cancelled(ctx, d.id)
		case <-time.After(patience / 10):
		}
	}
}

// open creates the core. An existing run is folded from its journal, and a new run begins with the spec.
func (d *driver) open(ctx context.Context, spec *engine.Spec) error {
	if !spec.Fresh {
		row, err := d.e.c.Store.Run(ctx, d.id)
		switch {
		case err == nil:
			return d.load(ctx, row)
		case tenon.ErrorCode(err) != tenon.CodeNotFound || len(spec.Data) == 0:
			return err
		}
	}
	r := spec.Run
	r.State, r.Stop, r.Seq, r.Waiting = tenon.RunWorking, "", 0, nil
	if r.Created.IsZero() {
		r.Created = d.clock.Now().UTC()
	}
	r.Updated = r.Created
	spec.Run = r
	data, err := json.Marshal(spec)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "run %s: its spec is not JSON: %w", d.id, err)
	}
	if d.core, err = d.e.c.NewCore(ctx, *spec); err != nil {
		return err
	}
	d.row, d.create, d.blobs, d.uses, d.early = r, &r, spec.Blobs, spec.Uses, spec.Late != nil
	d.e.works(d, r.Principal)
	return d.record(tenon.Event{Kind: tenon.EventRun, Data: data})
}

// load folds the journal of a run, and ends the attempts that the previous owner left in flight.
func (d *driver) load(ctx context.Context, row tenon.Run) error {
	d.row = row
	d.e.works(d, row.Principal)
	if row.State.Ended() && !d.alone {
		return nil
	}
	events, err := d.e.c.Store.Events(ctx, d.id, 0, 0)
	if err != nil {
		return err
	}
	var spec engine.Spec
	if len(events) == 0 || events[0].Kind != tenon.EventRun {
		return tenon.Errorf(tenon.CodeStore, "run %s: its journal does not begin with its spec; restore a backup",
			d.id)
	}
	if err := json.Unmarshal(events[0].Data, &spec); err != nil {
		return tenon.Errorf(tenon.CodeStore, "run %s: the spec in its journal is damaged: %w; restore a backup", d.id,
			err)
	}
	if d.core, err = d.e.c.NewCore(ctx, spec); err != nil {
		return err
	}
	for i := range events {
		if err := d.core.Apply(events[i]); err != nil {
			return err
		}
		d.seq = events[i].Seq
		d.note(&events[i])
	}
	d.waits = row.Waiting
	d.stored = rowState{row.State, row.Stop, row.Waiting}
	if row.State.Ended() {
		return nil
	}
	return d.recover()
}

// recover records the results that this process has in memory. Then it ends the remaining attempts, whose process has
// died, in the order of the journal.
func (d *driver) recover() error {
	if err := d.expireQuestions("", "the process that asked has ended"); err != nil {
		return err
	}
	if err := d.reclaim(); err != nil {
		return err
	}
	var open []string
	for name, s := range d.steps {
		if s.open {
			open = append(open, name)
		}
	}
	slices.SortFunc(open, func(a, b string) int { return int(d.steps[a].seq) - int(d.steps[b].seq) })
	for _, name := range open {
		if err := d.doubt(name); err != nil {
			return err
		}
	}
	return nil
}
