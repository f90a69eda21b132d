package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/store"
)

const (
	// auditEvery is the interval of the commits that store light calls. With the time of a commit, a call is stored
	// within 100 ms.
	auditEvery = 40 * time.Millisecond
	// maxAudits bounds the light calls that are under way or not stored. Further calls are runs of the engine.
	maxAudits = 4096
	// auditBatch is how many calls one commit stores.
	auditBatch = 256
	// auditGrace is how long a light call may take to end after the host was closed.
	auditGrace = 3 * time.Second
)

// audit is a light call that has ended and is not stored yet.
type audit struct {
	light    *executor.Light
	spec     engine.Spec
	snapshot *catalog.Snapshot
}

// audits stores the light calls of a host. Calls that have ended are stored together, at intervals. The engine takes
// over calls that are under way for an interval.
type audits struct {
	h *Host

	mu      sync.Mutex
	closed  bool
	count   int                           // calls that have entered and are not stored
	running map[*executor.Light]time.Time // that no engine has taken over
	waiting []audit
	kick    chan struct{} // wakes the loop; has one element if there is something to do
	loop    chan struct{} // closed when the loop has ended; nil before it begins
	quit    chan struct{}
	calls   sync.WaitGroup
}

// enter counts a call, and reports whether it can be light.
func (a *audits) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.count >= maxAudits {
		return false
	}
	a.count++
	a.calls.Add(1)
	return true
}

// leave notes that a call is not under way any more, or never was. The light call is nil if it did not begin.
func (a *audits) leave(l *executor.Light) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, l)
	a.count--
	a.calls.Done()
}

// begin carries out a call in a new goroutine.
func (a *audits) begin(ctx context.Context, l *executor.Light) {
	a.mu.Lock()
	if a.running == nil {
		a.running = map[*executor.Light]time.Time{}
	}
	a.running[l] = time.Now()
	a.wake()
	a.mu.Unlock()
	go func() {
		defer a.leave(l)
		l.Carry(ctx)
	}()
}

// ended queues a call that has ended.
func (a *audits) ended(done audit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++ // until it is stored
	a.waiting = append(a.waiting, done)
	a.wake()
}

// wake wakes the loop, and begins it at the first call. The caller holds the lock.
func (a *audits) wake() {
	if a.loop == nil {
		a.kick, a.quit, a.loop = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		go a.work(a.kick, a.quit, a.loop)
	}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// work stores calls at intervals, as long as there are some.
func (a *audits) work(kick, quit <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-kick:
		case <-quit:
			return
		}
		timer.Reset(auditEvery)
		select {
		case <-timer.C:
		case <-quit:
			return
		}
		a.adopt(time.Now().Add(-auditEvery))
		if a.store() || a.busy() {
			a.mu.Lock()
			a.wake()
			a.mu.Unlock()
		}
	}
}

func (a *audits) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.running) > 0
}

// adopt has the engine take over the calls that began before a time.
func (a *audits) adopt(before time.Time) {
	var list []*executor.Light
	a.mu.Lock()
	for l, began := range a.running {
		if !began.After(before) {
			list = append(list, l)
		}
	}
	a.mu.Unlock()
	for part := range slices.Chunk(list, auditBatch) {
		var group sync.WaitGroup
		for _, l := range part {
			group.Go(func() {
				if err := l.Adopt(context.Background()); err != nil {
					a.h.log.Warn("a call under way is not in the journal yet", "run", l.Row().ID, "error", err)
					return
				}
				a.mu.Lock()
				delete(a.running, l)
				a.mu.Unlock()
			})
		}
		group.Wait()
	}
}

// store stores the calls that have ended. It reports whether some are left, because the store cannot be written.
func (a *audits) store() (left bool) {
	for {
		a.mu.Lock()
		n := min(len(a.waiting), auditBatch)
		batch := slices.Clone(a.waiting[:n])
		a.waiting = slices.Delete(a.waiting, 0, n)
		a.mu.Unlock()
		if n == 0 {
			return left
		}
		errs := make([]error, n)
		var group sync.WaitGroup
		for i, done := range batch {
			group.Go(func() { errs[i] = a.h.storeAudit(done) }) // concurrent writes share a commit
		}
		group.Wait()
		var again []audit
		for i, err := range errs {
			if tenon.ErrorCode(err) == tenon.CodeStore {
				again = append(again, batch[i])
			} else if err != nil {
				a.h.log.Error("a call is not in the journal", "run", batch[i].light.Row().ID, "error", err)
			}
		}
		a.mu.Lock()
		a.waiting = append(again, a.waiting...)
		a.count -= n - len(again)
		a.mu.Unlock()
		if len(again) > 0 {
			a.h.log.Warn("calls are not in the journal yet", "calls", len(again))
			return true
		}
	}
}

// storeAudit stores a call.
func (h *Host) storeAudit(done audit) error {
	first, err := json.Marshal(done.spec)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "run %s: its spec is not JSON: %w", done.spec.Run.ID, err)
	}
	row, events := done.light.Journal(first)
	digest := done.snapshot.Digest()
	a := store.Append{Create: &row, Run: row.ID, Events: events, State: row.State, Stop: row.Stop}
	err = tenon.Errorf(tenon.CodeNotFound, "the snapshot is not stored")
	if h.isStored(digest) {
		a.Uses = []string{digest}
		err = h.store.Append(context.Background(), a)
	}
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		a.Uses, a.Blobs = nil, [][]byte{done.snapshot.Encode()}
		if err = h.store.Append(context.Background(), a); err == nil {
			h.markStored(digest)
		}
	}
	if err == nil {
		h.observe(row, events)
	}
	return err
}

// drain has the engine take over all calls under way. Further calls are not light.
func (a *audits) drain() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.adopt(time.Now())
}

// close ends the calls that no engine has taken over, and stores everything.
func (a *audits) close() {
	a.mu.Lock()
	loop, running := a.loop, slices.Collect(maps.Keys(a.running))
	a.mu.Unlock()
	for _, l := range running {
		l.Stop(tenon.ErrClosing)
	}
	ended := make(chan struct{})
	go func() {
		a.calls.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(auditGrace):
		a.h.log.Warn("calls of clients have not ended, and are not in the journal")
	}
	if loop == nil {
		return
	}
	close(a.quit)
	<-loop
	if a.store() {
		a.h.log.Error("calls are not in the journal, because the store cannot be written")
	}
}
