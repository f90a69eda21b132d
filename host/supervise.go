package host

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

const (
	// superviseEvery is the interval between searches of the store.
	superviseEvery = 500 * time.Millisecond
	// superviseRest is how long a run must have been at rest before it is resumed. After a decision, the process that
	// decided usually resumes it at once.
	superviseRest = time.Second
	// expirySweep is the interval between searches for waits of runs that have expired.
	expirySweep = 5 * time.Second
	// maxSupervised bounds the runs that are being resumed at a time: read, and begun. Afterwards they are only
	// followed.
	maxSupervised = 64
	// maxFollowed bounds the resumed runs that are followed until they rest. A run whose model works for minutes must
	// not keep others from being resumed.
	maxFollowed = 10_000
	// elsewhereRest is how long a run that needs another replica must have been at rest before that is reported.
	elsewhereRest = 5 * time.Second
	// maxBackoff bounds the pause before another attempt to resume a run. The first pause is superviseRest.
	maxBackoff = 5 * time.Minute
)

func (h serviceHandle) Supervise(ctx context.Context) {
	s := &supervisor{h: h.host, lost: map[string]*lostRun{}, freed: make(chan struct{}, 1)}
	defer s.work.Wait()
	if f, ok := h.host.store.Store.(store.Fleet); ok {
		defer f.Enlist()()
	}
	h.host.warnForeign(ctx)
	s.work.Go(func() { h.host.keepSchedules(ctx) })
	s.work.Go(func() { h.host.watchPins(ctx) })
	if h.host.cluster != nil && h.host.cfg.Worker {
		s.work.Go(func() { h.host.workForCluster(ctx) })
	}
	for ctx.Err() == nil {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			h.host.log.Warn("the search for runs that no process works on failed", "error", err)
		}
		select {
		case <-time.After(s.pause()):
		case <-s.freed:
		case <-ctx.Done():
		}
	}
}

// fewReplicas is the number of replicas that all search for runs at the interval superviseEvery.
const fewReplicas = 4

// pause returns the time until the next search. All replicas together search at about the same rate, however many they
// are. Processes that do not search, such as a question at a terminal, do not count. A random part keeps the replicas
// from searching at the same time.
func (s *supervisor) pause() time.Duration {
	f, ok := s.h.store.Store.(store.Fleet)
	if !ok || f.Size() <= fewReplicas {
		return superviseEvery
	}
	every := superviseEvery * time.Duration(f.Size()) / fewReplicas
	return every/2 + rand.N(every)
}

// ServeClaim is the claim of the process that serves a store and resumes its runs.
const ServeClaim = "serve"

// claims prefixes the leases of claims, so that no claim is the lease of a run.
const claims = "claim/"

func (h storageHandle) Claim(what string) (release func(), ok bool, err error) {
	if what == ServeClaim && h.host.cfg.isPostgres() {
		return h.claimReplica()
	}
	return h.host.store.Acquire(claims + what)
}

func (h stateHandle) Claimant(what string) (pid int) { return h.host.store.Holder(claims + what) }

func (h stateHandle) Changed(ctx context.Context) <-chan struct{} { return h.host.store.Changed(ctx) }

// supervisor is one call of [Service.Supervise].
type supervisor struct {
	h     *Host
	work  sync.WaitGroup
	freed chan struct{} // a slot is free

	swept time.Time // time of the last search for expired waits

	mu       sync.Mutex
	lost     map[string]*lostRun
	due      []tenon.Run // the runs of the last search that wait for a slot, oldest first
	resuming int         // runs that are being resumed
	followed int         // runs that are being resumed or followed
}

// lostRun is the state of a run that no process works on.
type lostRun struct {
	seq   uint64    // number of its last event at the last look
	seen  time.Time // when this process saw that event for the first time
	busy  bool      // it is being resumed
	left  bool      // it needs something that this process does not have, which is logged
	tries int       // consecutive failed attempts
	next  time.Time
}

// look resumes the runs whose turn it is, oldest first.
func (s *supervisor) look(ctx context.Context) error {
	runs, err := s.h.pages(ctx, engine.Filter{Resumable: true}, func(tenon.Run) bool { return true })
	if err != nil {
		return err
	}
	if now := s.h.now(); now.Sub(s.swept) >= expirySweep {
		s.swept = now
		expired, err := s.h.pages(ctx, engine.Filter{Expired: now}, func(r tenon.Run) bool {
			return !r.Foreign &&
				slices.ContainsFunc(r.Waiting, func(w tenon.Waiting) bool {
					return !w.Expires.IsZero() &&
						!now.Before(w.Expires)
				})
		})
		if err != nil {
			return err
		}
		runs = append(runs, expired...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	s.due = s.due[:0]
	for _, r := range slices.Backward(runs) {
		there[r.ID] = true
		if s.isDue(r) != nil {
			s.due = append(s.due, r)
		}
	}
	s.begin(ctx)
	for id, l := range s.lost {
		if !there[id] && !l.busy && s.h.now().Sub(l.next) > maxBackoff {
			delete(s.lost, id)
		}
	}
	return nil
}

// begin resumes the next runs that are due, as far as there are slots. The caller holds the lock.
func (s *supervisor) begin(ctx context.Context) {
	for len(s.due) > 0 && s.resuming < maxSupervised && s.followed < maxFollowed && ctx.Err() == nil {
		r := s.due[0]
		s.due = s.due[1:]
		if l := s.isDue(r); l != nil {
			l.busy = true
			s.resuming++
			s.followed++
			s.work.Go(func() { s.takeUp(ctx, r, l) })
		}
	}
}

// begun frees the slot of a run that was resumed, for the next one. Another search of the store for each of a thousand
// runs would read a million rows.
func (s *supervisor) begun(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resuming--
	s.begin(ctx)
}

// isDue returns the state of a run if it is time to resume it, otherwise nil.
func (s *supervisor) isDue(r tenon.Run) *lostRun {
	l := s.lost[r.ID]
	if l == nil {
		l = &lostRun{seq: r.Seq, seen: s.h.now()}
		s.lost[r.ID] = l
	}
	if l.busy {
		return nil
	}
	if l.seq != r.Seq {
		*l = lostRun{seq: r.Seq, seen: s.h.now()}
	}
	now := s.h.now()
	if now.Before(l.next) || l.rest(r, now) < superviseRest {
		return nil
	}
	return l
}

// rest returns how long a run has been at rest. The clock of the process that wrote its last event may be ahead.
func (l *lostRun) rest(r tenon.Run, now time.Time) time.Duration {
	return max(now.Sub(r.Updated), now.Sub(l.seen))
}

// takeUp resumes a run and follows it until it is at rest.
func (s *supervisor) takeUp(ctx context.Context, r tenon.Run, l *lostRun) {
	began := s.h.now()
	left, err := s.goOn(ctx, r, sync.OnceFunc(func() { s.begun(ctx) }))
	if errors.Is(err, errElsewhere) && l.rest(r, began) < elsewhereRest {
		left, err = false, nil // a replica that has the label takes it
	}
	now, rerr := s.h.store.Run(ctx, r.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed--
	l.busy = false
	if len(s.due) == 0 {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
	if ctx.Err() != nil || err == nil {
		return
	}
	if rerr == nil {
		l.seq = now.Seq // the recorded failure is not progress
	}
	if s.h.now().Sub(began) > maxBackoff {
		l.tries = 0
	}
	pause := min(superviseRest<<min(l.tries, 16), maxBackoff)
	l.tries++
	l.next = s.h.now().Add(pause)
	switch {
	case left && !l.left:
		s.h.log.Warn("run "+r.ID+" is not resumed: "+err.Error(), "run", r.ID)
		fallthrough
	case left:
		l.left = true
		s.h.engine.Leave(r.ID, tenon.Errorf(tenon.ErrorCode(err), "run %s is not resumed: %w", r.ID, err))
	default:
		s.h.log.Warn("run "+r.ID+" cannot be resumed: "+err.Error(), "run", r.ID, "again_in", pause)
	}
}

// goOn resumes a run, calls begun, and follows the run until it is at rest. It returns left if the run needs something
// that this host does not have.
func (s *supervisor) goOn(ctx context.Context, r tenon.Run, begun func()) (left bool, err error) {
	defer begun()
	if lack, err := s.h.fit(ctx, r); lack != nil || err != nil {
		return lack != nil, cmp.Or(lack, err)
	}
	s.h.log.Info("run "+r.ID+" is resumed: no process worked on it", "run", r.ID, "title", r.Title)
	if err := s.h.Runs().Resume(ctx, r.ID); err != nil {
		return false, err
	}
	begun()
	for _, err := range s.h.Runs().Events(ctx, r.ID, r.Seq) {
		if err != nil {
			return false, err
		}
	}
	if now, err := s.h.store.Run(ctx, r.ID); err == nil && ctx.Err() == nil {
		s.h.log.Info("run "+r.ID+" is "+string(now.State), "run", r.ID, "stop", string(now.Stop))
	}
	return false, nil
}

// pages returns the runs that a filter and want select, newest first.
func (h *Host) pages(ctx context.Context, f engine.Filter, want func(tenon.Run) bool) ([]tenon.Run, error) {
	var all []tenon.Run
	for f.Limit = 1000; ; {
		runs, err := h.engine.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if want(r) {
				all = append(all, r)
			}
		}
		if len(runs) < f.Limit {
			return all, nil
		}
		f.Before = runs[len(runs)-1].ID
	}
}

// fit returns which of a run's requirements this process does not meet, or nil if it meets all. Err is an error of
// the check.
func (h *Host) fit(ctx context.Context, r tenon.Run) (lack, err error) {
	if r.Core != agent.Version && r.Core != agent.DirectVersion && r.Core != workflow.Version {
		return tenon.Errorf(tenon.CodeConfig, "it was written by %q, which this version of tenon does not know",
			r.Core), nil
	}
	events, err := h.store.Events(ctx, r.ID, 0, 1)
	if err != nil {
		return nil, err
	}
	_, needs, err := view.FirstSpec[struct{ Model, Tools string }](r.ID, events)
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "its journal does not begin with its spec; put back a backup"), nil
	}
	if missing := h.brought.missing(r.ID, broughtIn(events[0])); len(missing) > 0 {
		return lost(r.ID, missing), nil
	}
	if needs.Model != "" {
		switch _, err := h.models.get(ctx, needs.Model); tenon.ErrorCode(err) {
		case "":
		case tenon.CodeNotFound, tenon.CodeConfig, tenon.CodeInvalid:
			return tenon.Errorf(tenon.CodeConfig, "its model cannot be used here: %w", err), nil
		default: // for example a temporarily unreadable secret
			return nil, err
		}
	}
	missing, err := h.missingServers(ctx, r.Core, needs.Tools)
	if err != nil {
		return nil, err
	}
	if elsewhere := h.elsewhere(missing); elsewhere != nil {
		return elsewhere, nil
	}
	if len(missing) > 0 {
		return tenon.Errorf(tenon.CodeConfig, "its servers are not configured here: %s; configure them, or continue "+
			"without them: tenon runs resume %s", strings.Join(missing, ", "), r.ID), nil
	}
	return nil, nil
}

// errElsewhere is wrapped by the error of a run that only another replica can continue.
var errElsewhere = errors.New("another replica has to continue it")

// elsewhere returns an error with errElsewhere if one of the servers is used by other replicas only.
func (h *Host) elsewhere(missing []string) error {
	for _, name := range missing {
		if s := h.config.Servers[name]; s.Elsewhere {
			return &tenon.Error{Code: tenon.CodeConfig, Err: errElsewhere, Message: "it needs a server of another " +
				"replica: " + s.WhereElse(name) + "; it waits for one"}
		}
	}
	return nil
}

// leftToOthers reports whether a run needs a server that is used by other replicas only. Their supervisors continue it.
func (h *Host) leftToOthers(ctx context.Context, row tenon.Run) (bool, error) {
	if !h.hasElsewhere() {
		return false, nil
	}
	lack, err := h.fit(ctx, row)
	return errors.Is(lack, errElsewhere), err
}

func (h *Host) hasElsewhere() bool {
	for _, s := range h.config.Servers {
		if s.Elsewhere {
			return true
		}
	}
	return false
}

// missingServers returns the servers of a snapshot that this host does not have. A server that only a tool table named
// counts as present if the host has a server with the same target under another name. Tools that the journal of the run
// suffices for are never missing: tools of the client, and a called workflow, which is stored with its run.
func (h *Host) missingServers(ctx context.Context, core, digest string) (missing []string, err error) {
	snapshot, err := h.snapshot(ctx, digest)
	if err != nil {
		return nil, err
	}
	sets := h.sets()
	for _, t := range snapshot.Tools() {
		if k := h.kinds[t.Server]; k.clients || k.call != nil && core == agent.DirectVersion {
			continue
		}
		here := h.serverFor(t.Server, t.Rules.Target)
		_, ok := sets[here]
		if ok = ok && (t.Rules.Target == "" || h.targetOf(here) == t.Rules.Target); !ok &&
			!slices.Contains(missing, t.Server) {
			missing = append(missing, t.Server)
		}
	}
	return missing, nil
}

func (h runDataHandle) ToolTable(ctx context.Context) (t *agent.ToolTable, missing []string, err error) {
	events, err := h.host.store.Events(ctx, h.id, 0, 1)
	if err != nil {
		return nil, nil, err
	}
	row, began, err := view.FirstSpec[struct {
		Tools string
		Table *agent.ToolTable
	}](h.id, events)
	if err != nil {
		return nil, nil, err
	}
	if began.Table == nil {
		return nil, nil, nil
	}
	missing, err = h.host.missingServers(ctx, row.Core, began.Tools)
	return began.Table, missing, err
}

func (h serviceHandle) Drain(ctx context.Context) {
	h.host.audits.drain()
	if h.host.replaced.Load() {
		h.host.engine.HandOver(ctx)
		return
	}
	h.host.engine.Drain(ctx)
}
