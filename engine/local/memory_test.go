package local

import (
	"context"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// disk is an in-memory store that several processes have open.
type disk struct {
	mu      sync.Mutex
	rows    map[string]*tenon.Run
	events  map[string][]tenon.Event
	signals []*store.Signal
	leases  map[string]*proc
	changed chan struct{}
}

func newDisk() *disk {
	return &disk{rows: map[string]*tenon.Run{}, events: map[string][]tenon.Event{}, leases: map[string]*proc{},
		changed: make(chan struct{})}
}

// proc is a process that has the disk open. A dead process writes nothing and holds no lease.
type proc struct {
	*disk
	dead    bool // guarded by disk.mu
	appends int  // writes left until it dies; 0 for never
	after   bool // dies after the write instead of before it
}

func (p *proc) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died()
}

func (p *proc) died() {
	p.dead = true
	for run, owner := range p.leases {
		if owner == p {
			delete(p.leases, run)
		}
	}
	p.notify()
}

func (p *proc) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// isDead reports whether the process is dead. It is called before each effect.
func (p *proc) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

var errDead = tenon.Errorf(tenon.CodeStore, "the process is dead")

// do runs one operation with the disk locked.
func (p *proc) do(op func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	return op()
}

func (p *proc) Append(_ context.Context, a store.Append) error {
	return p.do(func() error {
		if p.appends > 0 {
			if p.appends--; p.appends == 0 {
				defer p.died()
				if !p.after {
					return errDead
				}
			}
		}
		row := p.rows[a.Run]
		switch {
		case a.Create != nil && row != nil:
			return tenon.Errorf(tenon.CodeConflict, "run %s exists", a.Run)
		case a.Create != nil:
			r := *a.Create
			row = &r
			p.rows[a.Run] = row
		case row == nil:
			return tenon.Errorf(tenon.CodeNotFound, "no run %s", a.Run)
		}
		for _, e := range a.Events {
			if e.Seq != row.Seq+1 {
				return tenon.Errorf(tenon.CodeConflict, "event %d follows event %d", e.Seq, row.Seq)
			}
			row.Seq = e.Seq
			p.events[a.Run] = append(p.events[a.Run], e)
		}
		if a.State != "" {
			row.State, row.Stop, row.Waiting = a.State, a.Stop, slices.Clone(a.Waiting)
		}
		for id, seq := range a.Taken {
			if s := p.signal(id); s != nil {
				s.Seq = seq
			}
		}
		p.notify()
		if p.dead { // died after the write, before it returned
			return errDead
		}
		return nil
	})
}

func (p *proc) Events(_ context.Context, run string, after uint64, limit int) (list []tenon.Event, err error) {
	err = p.do(func() error {
		list = slices.Clone(p.events[run][min(after, uint64(len(p.events[run]))):])
		if limit > 0 {
			list = list[:min(limit, len(list))]
		}
		return nil
	})
	return list, err
}

func (p *proc) Run(_ context.Context, id string) (row tenon.Run, err error) {
	err = p.do(func() error {
		if p.rows[id] == nil {
			return tenon.Errorf(tenon.CodeNotFound, "no run %s", id)
		}
		row = *p.rows[id]
		return nil
	})
	return row, err
}

func (p *proc) Runs(context.Context, store.RunFilter) ([]tenon.Run, error) { return nil, nil }

func (p *proc) signal(id string) *store.Signal {
	for _, s := range p.signals {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (p *proc) PutSignal(_ context.Context, s store.Signal) (got store.Signal, err error) {
	err = p.do(func() error {
		if old := p.signal(s.ID); old != nil {
			got = *old
			return nil
		}
		p.signals = append(p.signals, &s)
		got = s
		p.notify()
		return nil
	})
	return got, err
}

func (p *proc) Signals(_ context.Context, run string) (list []store.Signal, err error) {
	err = p.do(func() error {
		for _, s := range p.signals {
			if s.Seq == 0 && (run == "" || s.Run == run) {
				list = append(list, *s)
			}
		}
		return nil
	})
	return list, err
}

func (p *proc) Signal(_ context.Context, id string) (got store.Signal, err error) {
	err = p.do(func() error {
		s := p.signal(id)
		if s == nil {
			return tenon.Errorf(tenon.CodeNotFound, "no signal %s", id)
		}
		got = *s
		return nil
	})
	return got, err
}

func (p *proc) Settled(_ context.Context, run, step, kind string) (got store.Signal, err error) {
	err = p.do(func() error {
		for _, s := range p.signals {
			if s.Run != run || s.Step != step || s.Kind != kind || s.Seq <= got.Seq {
				continue
			}
			if e := p.events[run][s.Seq-1]; e.Step == step && e.Kind == kind {
				got = *s
			}
		}
		if got.ID == "" {
			return tenon.Errorf(tenon.CodeNotFound, "no signal has settled step %s", step)
		}
		return nil
	})
	return got, err
}

func (p *proc) SettleSignal(_ context.Context, id string, seq uint64) error {
	return p.do(func() error {
		p.signal(id).Seq = seq
		return nil
	})
}

func (p *proc) Acquire(run string) (release func(), ok bool, err error) {
	err = p.do(func() error {
		if p.leases[run] != nil {
			return nil
		}
		ok, p.leases[run] = true, p
		return nil
	})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.leases[run] == p {
			delete(p.leases, run)
		}
	}, ok, err
}

func (p *proc) Held(run string) (held bool, err error) {
	err = p.do(func() error {
		held = p.leases[run] != nil
		return nil
	})
	return held, err
}

func (p *proc) Changed(context.Context) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

var _ Store = (*proc)(nil)
