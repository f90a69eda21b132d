package host

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

const (
	// auditEvery is the interval of the commits that store light calls. With the time of a commit, a call is stored
	// within 100 ms. A commit costs as much as storing several calls, so the interval is long.
	auditEvery = 75 * time.Millisecond
	// adoptAfter is how long a call may be under way before the engine takes it over.
	adoptAfter = 40 * time.Millisecond
	// maxIdleCallers is how many goroutines wait for the next call.
	maxIdleCallers = 64
	// maxAudits bounds the light calls that are under way or not stored. Further calls are runs of the engine.
	maxAudits = 4096
	// auditBatch is how many calls one commit stores.
	auditBatch = 256
	// auditGrace is how long a light call may take to end after the host was closed.
	auditGrace = 3 * time.Second
)

// audit is a light call that has ended and is not stored yet.
type audit struct {
	light *executor.Light
	call  directCall
}

// audits stores the light calls of a host. Calls that have ended are stored together, at intervals. The engine takes
// over calls that are under way for an interval.
type audits struct {
	h *Host

	mu      sync.Mutex
	closed  bool
	count   int                           // calls that have begun and are not stored
	running map[*executor.Light]time.Time // calls that no engine has taken over
	waiting []audit
	kick    chan struct{} // wakes the loop; has one element if there is something to do
	loop    chan struct{} // closed when the loop has ended; nil before it begins
	quit    chan struct{}
	calls   sync.WaitGroup
	next    chan carried   // to idle callers
	idle    int            // callers that wait for a call
	callers sync.WaitGroup // goroutines that carry out calls

	texts auditTexts
}

// carried is a call to be carried out.
type carried struct {
	ctx   context.Context
	light *executor.Light
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

// leave notes that a call is not under way any more, or never was. The light call is nil if it did not begin. Stay
// reports that the goroutine that carried it out counts as idle and has to wait for the next call.
func (a *audits) leave(l *executor.Light) (stay bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, l)
	a.count--
	a.calls.Done()
	if l == nil || a.closed || a.idle >= maxIdleCallers {
		return false
	}
	a.idle++
	return true
}

// begin carries out a call in another goroutine. It prefers an idle one, whose stack has grown to the size that a call
// needs.
func (a *audits) begin(ctx context.Context, l *executor.Light) {
	a.mu.Lock()
	if a.running == nil {
		a.running = map[*executor.Light]time.Time{}
	}
	a.running[l] = time.Now()
	a.wake()
	waits := a.idle > 0
	if waits {
		a.idle--
	}
	a.mu.Unlock()
	if waits {
		select {
		case a.next <- carried{ctx, l}:
			return
		case <-a.quit: // the host did not wait for this call
		}
	}
	a.callers.Go(func() { a.carry(carried{ctx, l}) })
}

// carry carries out a call, and then further ones.
func (a *audits) carry(c carried) {
	for {
		c.light.Carry(c.ctx)
		stay := a.leave(c.light)
		c = carried{} // so that the call can be freed
		if !stay {
			return
		}
		select {
		case c = <-a.next:
		case <-a.quit:
			return
		}
	}
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
		a.next = make(chan carried)
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
		for _, pause := range [...]time.Duration{adoptAfter, auditEvery - adoptAfter} {
			timer.Reset(pause)
			select {
			case <-timer.C:
			case <-quit:
				return
			}
			a.adopt(time.Now().Add(-adoptAfter))
		}
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
		errs := a.h.storeAudits(batch)
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

// storeAudits stores calls in one commit. It returns an error or nil for each.
func (h *Host) storeAudits(batch []audit) []error {
	errs, list := make([]error, len(batch)), make([]store.Append, len(batch))
	for i, done := range batch {
		list[i], errs[i] = auditAppend(done)
	}
	var group sync.WaitGroup
	for i, done := range batch {
		if errs[i] == nil {
			// Concurrent writes share a commit.
			group.Go(func() { errs[i] = h.appendAudit(&list[i], done.call.snapshot) })
		}
	}
	group.Wait()
	for i, a := range list {
		if errs[i] == nil {
			// The first event has the call's arguments, which are not indexed.
			h.audits.texts.add(a.Run, a.Events[len(a.Events)-1].Seq, h.transcripts.Texts(a.Events[1:]))
			h.observe(*a.Create, a.Events)
		}
	}
	return errs
}

// auditAppend returns what stores a call.
func auditAppend(done audit) (store.Append, error) {
	spec := done.call.encoded()
	first, err := spec.Encode()
	if err != nil {
		return store.Append{}, tenon.Errorf(tenon.CodeInvalid, "run %s: its spec is not JSON: %w", spec.Run.ID, err)
	}
	row, events := done.light.Journal(first)
	return store.Append{Create: &row, Run: row.ID, Events: events, State: row.State, Stop: row.Stop,
		Tally: callTally(row, events)}, nil
}

// appendAudit stores a call that used a snapshot of the tools.
func (h *Host) appendAudit(a *store.Append, snapshot *catalog.Snapshot) error {
	digest := snapshot.Digest()
	var err error = tenon.Errorf(tenon.CodeNotFound, "the snapshot is not stored")
	if h.isStored(digest) {
		a.Uses = []string{digest}
		err = h.store.Append(context.Background(), *a)
	}
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		a.Uses, a.Blobs = nil, [][]byte{snapshot.Encode()}
		if err = h.store.Append(context.Background(), *a); err == nil {
			h.markStored(digest)
		}
	}
	return err
}

// auditTexts are the texts of stored light calls that are not in the index yet. They are only in memory: after a crash,
// or above the bound, [stateHandle.Keep] reads them from the journals.
type auditTexts struct {
	mu   sync.Mutex
	list []store.RunTexts
	size int
}

// auditTextBytes bounds the texts in memory, in bytes.
const auditTextBytes = 8 << 20

func (t *auditTexts) add(run string, last uint64, texts []store.Text) {
	size := 0
	for _, x := range texts {
		size += len(x.Text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) < maxAudits && t.size+size <= auditTextBytes {
		t.list, t.size = append(t.list, store.RunTexts{Run: run, UpTo: last, Texts: texts}), t.size+size
	}
}

// take returns the texts of one transaction and forgets them.
func (t *auditTexts) take() []store.RunTexts {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.list), auditBatch)
	list := slices.Clone(t.list[:n])
	t.list = slices.Delete(t.list, 0, n)
	for _, r := range list {
		for _, x := range r.Texts {
			t.size -= len(x.Text)
		}
	}
	return list
}

// callTally returns the encoded summary of the run of a light call, so that nothing has to read the run again for the
// statistics.
func callTally(row tenon.Run, events []tenon.Event) []byte {
	t, ok := view.CallTally(row, events)
	if !ok {
		t = view.TallyOf(row, events)
	}
	return view.AppendTally(nil, &t)
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
	all := false
	select {
	case <-ended:
		all = true
	case <-time.After(auditGrace):
		a.h.log.Warn("calls of clients have not ended, and are not in the journal")
	}
	if loop == nil {
		return
	}
	close(a.quit)
	<-loop
	if all {
		a.callers.Wait()
	}
	if a.store() {
		a.h.log.Error("calls are not in the journal, because the store cannot be written")
	}
}
