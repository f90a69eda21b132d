package local

import (
	"time"

	"github.com/tenonhq/tenon"
)

// The bounds of the results that an engine keeps in memory while the store cannot be written. If there are more, the
// results of the runs that stopped first are dropped. A dropped result is reported as unknown, as after the death of
// the process.
const (
	maxUnstoredRuns  = 1024
	maxUnstoredBytes = 64 << 20
)

// unstored is the result of an attempt that ended while the store could not be written.
type unstored struct {
	step    string
	attempt int
	events  []tenon.Event
}

func (u unstored) size() (n int) {
	for i := range u.events {
		n += len(u.events[i].Data)
	}
	return n
}

// unstoredRun contains the results of a run that are not stored.
type unstoredRun struct {
	created time.Time // distinguishes the run from a later run with the same id
	results []unstored
	size    int // bytes
}

// unstoredRuns keeps results by run until they are stored.
type unstoredRuns struct {
	runs  map[string]unstoredRun
	order []string // oldest first
	size  int      // bytes
}

func (u *unstoredRuns) put(id string, created time.Time, results []unstored) {
	u.forget(id)
	run := unstoredRun{created: created, results: results}
	for _, r := range results {
		run.size += r.size()
	}
	if len(results) == 0 || run.size > maxUnstoredBytes {
		return
	}
	for len(u.order) == maxUnstoredRuns || u.size+run.size > maxUnstoredBytes {
		u.forget(u.order[0])
	}
	if u.runs == nil {
		u.runs = map[string]unstoredRun{}
	}
	u.runs[id], u.order, u.size = run, append(u.order, id), u.size+run.size
}

func (u *unstoredRuns) forget(id string) {
	run, ok := u.runs[id]
	if !ok {
		return
	}
	delete(u.runs, id)
	u.size -= run.size
	for i, o := range u.order {
		if o == id {
			u.order = append(u.order[:i], u.order[i+1:]...)
			return
		}
	}
}

// keep keeps the results that this driver could not store. The next driver of the run in this process records them. It
// returns the number of results.
func (d *driver) keep() int {
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	d.e.unstored.put(d.id, d.row.Created, d.unstored)
	return len(d.e.unstored.runs[d.id].results)
}

// reclaim records the results that the previous driver could not store. A result is recorded only if its attempt is
// still open in the journal. Otherwise it was stored after all, or another process has continued the run.
func (d *driver) reclaim() error {
	d.e.mu.Lock()
	run, ok := d.e.unstored.runs[d.id]
	d.e.mu.Unlock()
	if !ok {
		return nil
	}
	d.reclaimed = true
	for _, r := range run.results {
		s := d.steps[r.step]
		if !run.created.Equal(d.row.Created) || s == nil || !s.open || s.attempts != r.attempt {
			continue
		}
		if err := d.record(r.events...); err != nil {
			d.e.mu.Lock()
			d.e.unstored.forget(d.id) // otherwise the next driver would fail, too
			d.e.mu.Unlock()
			return err
		}
		d.unstored = append(d.unstored, r)
	}
	return nil
}

// settled drops the kept results, because they are stored now.
func (d *driver) settled() {
	clear(d.unstored)
	d.unstored = d.unstored[:0]
	if d.reclaimed {
		d.reclaimed = false
		d.e.mu.Lock()
		d.e.unstored.forget(d.id)
		d.e.mu.Unlock()
	}
}
