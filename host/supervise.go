package host

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/workflow"
)

const (
	// superviseEvery is the time between two looks at the store.
	superviseEvery = 500 * time.Millisecond
	// superviseRest is how long a run must have been at rest before it is taken
	// up: who decides about a run mostly goes on with it at once.
	superviseRest = time.Second
	// expirySweep is the time between two looks for runs that wait for a person and
	// have waited as long as they may.
	expirySweep = 5 * time.Second
	// maxSupervised bounds the runs that are taken up at a time.
	maxSupervised = 16
	// maxBackoff bounds the pause after which a run that cannot go on is tried
	// again; the first is superviseRest.
	maxBackoff = 5 * time.Minute
)

// Supervise goes on with the runs that no process works on, now and until ctx
// ends: those whose process died, those that were decided while nobody worked
// on them, and those that have waited for a person as long as they may. At most 16
// of them are at work at a time. One that cannot go on is tried again after a pause
// that doubles up to five minutes; one that needs what this host does not have (its
// version of the core, its model, its servers) is left as it is. The log says what
// was done.
//
// Supervise returns once the runs that it took up are at rest or the host is
// closed. A store needs one process that does this, see [Host.Claim].
func (h *Host) Supervise(ctx context.Context) {
	s := &supervisor{h: h, lost: map[string]*lostRun{}, freed: make(chan struct{}, 1)}
	defer s.work.Wait()
	for ctx.Err() == nil {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("runs that nobody works on cannot be looked for", "error", err)
		}
		select {
		case <-time.After(superviseEvery):
		case <-s.freed:
		case <-ctx.Done():
		}
	}
}

// Claim takes a lease of the store for something that one process at a time may
// do, such as serve it; ok is false where somebody has it. The operating system
// frees it when the process dies.
func (h *Host) Claim(what string) (release func(), ok bool, err error) {
	return h.store.Acquire("claim/" + what)
}

// Claimed reports whether somebody, this host included, has such a lease.
func (h *Host) Claimed(what string) (bool, error) { return h.store.Held("claim/" + what) }

// Changed returns a channel that is closed at the next change of the store, by this
// process or another one. Ask for it first and look at the store then; nobody watches
// for a caller whose ctx has ended.
func (h *Host) Changed(ctx context.Context) <-chan struct{} { return h.store.Changed(ctx) }

// supervisor is one [Host.Supervise].
type supervisor struct {
	h     *Host
	work  sync.WaitGroup
	freed chan struct{} // a slot is free

	swept time.Time // when expired waits were last looked for

	mu   sync.Mutex
	lost map[string]*lostRun
	busy int
}

// lostRun is what is known about a run that nobody works on.
type lostRun struct {
	seq   uint64 // of its last event when it was looked at
	busy  bool   // it is being taken up
	left  bool   // it needs what is not here
	tries int    // that failed, one after the other
	next  time.Time
}

// look takes up what is to be taken up, oldest first.
func (s *supervisor) look(ctx context.Context) error {
	runs, err := s.h.pages(ctx, engine.Filter{Resumable: true}, func(tenon.Run) bool { return true })
	if err != nil {
		return err
	}
	if now := s.h.now(); now.Sub(s.swept) >= expirySweep {
		s.swept = now
		expired, err := s.h.pages(ctx, engine.Filter{State: tenon.RunInputRequired}, func(r tenon.Run) bool {
			return slices.ContainsFunc(r.Waiting, func(w tenon.Waiting) bool { return !w.Expires.IsZero() && !now.Before(w.Expires) })
		})
		if err != nil {
			return err
		}
		runs = append(runs, expired...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, r := range slices.Backward(runs) {
		there[r.ID] = true
		if l := s.due(r); l != nil && s.busy < maxSupervised && ctx.Err() == nil {
			l.busy = true
			s.busy++
			s.work.Go(func() { s.takeUp(ctx, r, l) })
		}
	}
	for id, l := range s.lost {
		if !there[id] && !l.busy && s.h.now().Sub(l.next) > maxBackoff {
			delete(s.lost, id)
		}
	}
	return nil
}

// due returns what is known about a run if it is its turn, else nil.
func (s *supervisor) due(r tenon.Run) *lostRun {
	l := s.lost[r.ID]
	if l == nil {
		l = &lostRun{seq: r.Seq}
		s.lost[r.ID] = l
	}
	if l.busy {
		return nil
	}
	if l.seq != r.Seq {
		*l = lostRun{seq: r.Seq}
	}
	now := s.h.now()
	if l.left {
		l.next = now // it is remembered as long as it is seen
		return nil
	}
	if now.Before(l.next) || now.Sub(r.Updated) < superviseRest {
		return nil
	}
	return l
}

// takeUp goes on with a run and follows it until it is at rest.
func (s *supervisor) takeUp(ctx context.Context, r tenon.Run, l *lostRun) {
	began := s.h.now()
	left, err := s.goOn(ctx, r)
	now, rerr := s.h.store.Run(ctx, r.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	l.busy = false
	select {
	case s.freed <- struct{}{}:
	default:
	}
	switch {
	case ctx.Err() != nil:
	case left:
		l.left = true
		s.h.log.Warn("run "+r.ID+" is left as it is: "+err.Error(), "run", r.ID)
	case err != nil:
		if rerr == nil {
			l.seq = now.Seq // what was recorded of the failure is no progress
		}
		if s.h.now().Sub(began) > maxBackoff {
			l.tries = 0
		}
		pause := min(superviseRest<<min(l.tries, 16), maxBackoff)
		l.tries++
		l.next = s.h.now().Add(pause)
		s.h.log.Warn("run "+r.ID+" cannot go on: "+err.Error(), "run", r.ID, "again_in", pause)
	}
}

// goOn reports left for a run that needs what this host does not have.
func (s *supervisor) goOn(ctx context.Context, r tenon.Run) (left bool, err error) {
	if lack, err := s.h.fit(ctx, r); lack != nil || err != nil {
		return lack != nil, cmp.Or(lack, err)
	}
	s.h.log.Info("run "+r.ID+" goes on: nobody worked on it", "run", r.ID, "title", r.Title)
	if err := s.h.Resume(ctx, r.ID); err != nil {
		return false, err
	}
	for _, err := range s.h.Events(ctx, r.ID, r.Seq) {
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

// fit says what of a run's needs is missing here, nil for nothing. The error is
// about the look at it.
func (h *Host) fit(ctx context.Context, r tenon.Run) (lack, err error) {
	if r.Core != agent.Version && r.Core != agent.DirectVersion && r.Core != workflow.Version {
		return tenon.Errorf(tenon.CodeConfig, "it was written by %q, which this version of tenon does not know", r.Core), nil
	}
	events, err := h.store.Events(ctx, r.ID, 0, 1)
	if err != nil {
		return nil, err
	}
	var spec engine.Spec
	var needs struct{ Model, Tools string }
	if len(events) == 0 || json.Unmarshal(events[0].Data, &spec) != nil || json.Unmarshal(spec.Data, &needs) != nil {
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
		default: // such as a secret that cannot be read at the moment
			return nil, err
		}
	}
	snapshot, err := h.snapshot(ctx, needs.Tools)
	if err != nil {
		return nil, err
	}
	var missing []string
	sets := h.sets()
	for _, t := range snapshot.Tools() {
		if _, ok := sets[t.Server]; !ok && !slices.Contains(missing, t.Server) {
			missing = append(missing, t.Server)
		}
	}
	if len(missing) > 0 {
		return tenon.Errorf(tenon.CodeConfig, "its servers are not configured here: %s", strings.Join(missing, ", ")), nil
	}
	return nil, nil
}

// Logger returns where the host logs to, with secrets masked.
func (h *Host) Logger() *slog.Logger { return h.log }

// Drain begins nothing new and returns when the model calls and tool calls that
// are under way have ended and are stored, or with ctx. The runs can be resumed.
// Close is still to be called.
func (h *Host) Drain(ctx context.Context) { h.engine.Drain(ctx) }

// Version is what the host was opened with as its program's version.
func (h *Host) Version() string { return h.cfg.Version }
