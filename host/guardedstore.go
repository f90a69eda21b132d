package host

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/postgres"
	"github.com/tenonhq/tenon/store/sqlite"
)

// guardedStore is a store of the program. If one of its methods panics, the method returns an error of code store, and
// the engine stops the run: nothing more is written for it, because it is unknown whether the write was made. A resumed
// run reads its journal again, which shows it. Calls that ended meanwhile keep their results in memory, as while a disk
// is full.
type guardedStore struct {
	of  store.Store
	log *slog.Logger
}

// guarded returns the program's store with its guard. tenon's own stores have none.
func guarded(s store.Store, log *slog.Logger) store.Store {
	switch s.(type) {
	case *sqlite.Store, *postgres.Store, *guardedStore:
		return s
	}
	return &guardedStore{s, log}
}

// caught turns a panic of a method into an error. It must be deferred directly.
func (g *guardedStore) caught(method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	g.log.Error("the program's store panicked", "method", method, "panic", fmt.Sprint(p), "stack",
		string(debug.Stack()))
	if err != nil {
		*err = tenon.Errorf(tenon.CodeStore, "the program's store panicked in %s: it is unknown whether the store was "+
			"changed; fix the store in the program, then resume the run, which reads its journal again; the log has "+
			"the stack", method)
	}
}

// Adopt implements [store.Store].
func (g *guardedStore) Adopt(ctx context.Context, seen string) (err error) {
	defer g.caught("Adopt", &err)
	return g.of.Adopt(ctx, seen)
}

// Append implements [store.Store].
func (g *guardedStore) Append(ctx context.Context, a store.Append) (err error) {
	defer g.caught("Append", &err)
	return g.of.Append(ctx, a)
}

// Admit implements [store.Store].
func (g *guardedStore) Admit(ctx context.Context, key string, calls int, per, most time.Duration,
	now time.Time) (wait time.Duration, ok bool, err error) {
	defer g.caught("Admit", &err)
	return g.of.Admit(ctx, key, calls, per, most, now)
}

// Balances implements [store.Store].
func (g *guardedStore) Balances(ctx context.Context, prefix string) (list []store.Balance, err error) {
	defer g.caught("Balances", &err)
	return g.of.Balances(ctx, prefix)
}

// Blob implements [store.Store].
func (g *guardedStore) Blob(ctx context.Context, digest string) (b []byte, err error) {
	defer g.caught("Blob", &err)
	return g.of.Blob(ctx, digest)
}

// Close implements [store.Store].
func (g *guardedStore) Close() (err error) {
	defer g.caught("Close", &err)
	return g.of.Close()
}

// DeleteGrant implements [store.Store].
func (g *guardedStore) DeleteGrant(ctx context.Context, principal tenon.Principal, id string) (err error) {
	defer g.caught("DeleteGrant", &err)
	return g.of.DeleteGrant(ctx, principal, id)
}

// DeletePins implements [store.Store].
func (g *guardedStore) DeletePins(ctx context.Context, server string, remotes ...string) (err error) {
	defer g.caught("DeletePins", &err)
	return g.of.DeletePins(ctx, server, remotes...)
}

// DeleteSession implements [store.Store].
func (g *guardedStore) DeleteSession(ctx context.Context, id string) (err error) {
	defer g.caught("DeleteSession", &err)
	return g.of.DeleteSession(ctx, id)
}

// DeleteSessions implements [store.Store].
func (g *guardedStore) DeleteSessions(ctx context.Context, list []tenon.Session,
	progress func(int)) (gone []tenon.Session, err error) {
	defer g.caught("DeleteSessions", &err)
	return g.of.DeleteSessions(ctx, list, progress)
}

// Events implements [store.Store].
func (g *guardedStore) Events(ctx context.Context, run string, after uint64,
	limit int) (list []tenon.Event, err error) {
	defer g.caught("Events", &err)
	return g.of.Events(ctx, run, after, limit)
}

// Foreign implements [store.Store].
func (g *guardedStore) Foreign(ctx context.Context) (f store.Foreign, err error) {
	defer g.caught("Foreign", &err)
	return g.of.Foreign(ctx)
}

// Grants implements [store.Store].
func (g *guardedStore) Grants(ctx context.Context, principal tenon.Principal) (list []store.Grant, err error) {
	defer g.caught("Grants", &err)
	return g.of.Grants(ctx, principal)
}

// SessionGrants implements [store.Store].
func (g *guardedStore) SessionGrants(ctx context.Context, principal tenon.Principal) (list []store.SessionGrant,
	err error) {
	defer g.caught("SessionGrants", &err)
	return g.of.SessionGrants(ctx, principal)
}

// SessionGranted implements [store.Store].
func (g *guardedStore) SessionGranted(ctx context.Context, session, key string) (holds bool, err error) {
	defer g.caught("SessionGranted", &err)
	return g.of.SessionGranted(ctx, session, key)
}

// PutSessionGrant implements [store.Store].
func (g *guardedStore) PutSessionGrant(ctx context.Context, grant store.SessionGrant) (err error) {
	defer g.caught("PutSessionGrant", &err)
	return g.of.PutSessionGrant(ctx, grant)
}

// DeleteSessionGrant implements [store.Store].
func (g *guardedStore) DeleteSessionGrant(ctx context.Context, principal tenon.Principal, id string) (err error) {
	defer g.caught("DeleteSessionGrant", &err)
	return g.of.DeleteSessionGrant(ctx, principal, id)
}

// Held implements [store.Store].
func (g *guardedStore) Held(run string) (held bool, err error) {
	defer g.caught("Held", &err)
	return g.of.Held(run)
}

// HeldOf implements [store.LeaseSets].
func (g *guardedStore) HeldOf(runs []string) (held map[string]bool, err error) {
	defer g.caught("HeldOf", &err)
	return store.HeldOf(g.of, runs)
}

// ImportSession implements [store.Store].
func (g *guardedStore) ImportSession(ctx context.Context, i store.Import) (err error) {
	defer g.caught("ImportSession", &err)
	return g.of.ImportSession(ctx, i)
}

// Pin implements [store.Store].
func (g *guardedStore) Pin(ctx context.Context, server, remote string) (p store.Pin, err error) {
	defer g.caught("Pin", &err)
	return g.of.Pin(ctx, server, remote)
}

// Pins implements [store.Store].
func (g *guardedStore) Pins(ctx context.Context, server string) (list []store.Pin, err error) {
	defer g.caught("Pins", &err)
	return g.of.Pins(ctx, server)
}

// Probe implements [store.Store].
func (g *guardedStore) Probe(ctx context.Context) (err error) {
	defer g.caught("Probe", &err)
	return g.of.Probe(ctx)
}

// PutBlob implements [store.Store].
func (g *guardedStore) PutBlob(ctx context.Context, run string, data []byte) (digest string, err error) {
	defer g.caught("PutBlob", &err)
	return g.of.PutBlob(ctx, run, data)
}

// PutGrant implements [store.Store].
func (g *guardedStore) PutGrant(ctx context.Context, x store.Grant) (err error) {
	defer g.caught("PutGrant", &err)
	return g.of.PutGrant(ctx, x)
}

// PutPins implements [store.Store].
func (g *guardedStore) PutPins(ctx context.Context, pins []store.Pin, fresh bool) (err error) {
	defer g.caught("PutPins", &err)
	return g.of.PutPins(ctx, pins, fresh)
}

// PutResult implements [store.Store].
func (g *guardedStore) PutResult(ctx context.Context, r store.KeptResult) (err error) {
	defer g.caught("PutResult", &err)
	return g.of.PutResult(ctx, r)
}

// PutSession implements [store.Store].
func (g *guardedStore) PutSession(ctx context.Context, s tenon.Session) (err error) {
	defer g.caught("PutSession", &err)
	return g.of.PutSession(ctx, s)
}

// PutSignal implements [store.Store].
func (g *guardedStore) PutSignal(ctx context.Context, s store.Signal) (kept store.Signal, err error) {
	defer g.caught("PutSignal", &err)
	return g.of.PutSignal(ctx, s)
}

// PutTallies implements [store.Store].
func (g *guardedStore) PutTallies(ctx context.Context, list []store.Tally) (err error) {
	defer g.caught("PutTallies", &err)
	return g.of.PutTallies(ctx, list)
}

// PutTexts implements [store.Store].
func (g *guardedStore) PutTexts(ctx context.Context, list []store.RunTexts) (err error) {
	defer g.caught("PutTexts", &err)
	return g.of.PutTexts(ctx, list)
}

// Release implements [store.Store].
func (g *guardedStore) Release(ctx context.Context, run string) (err error) {
	defer g.caught("Release", &err)
	return g.of.Release(ctx, run)
}

// Reserve implements [store.Store].
func (g *guardedStore) Reserve(ctx context.Context, run, id string,
	charges []store.Charge) (list []store.Balance, err error) {
	defer g.caught("Reserve", &err)
	return g.of.Reserve(ctx, run, id, charges)
}

// Result implements [store.Store].
func (g *guardedStore) Result(ctx context.Context, key string, now time.Time) (r store.KeptResult, err error) {
	defer g.caught("Result", &err)
	return g.of.Result(ctx, key, now)
}

// ResultKeys implements [store.Store].
func (g *guardedStore) ResultKeys(ctx context.Context, prefix string, now time.Time, limit int) (list []string,
	err error) {
	defer g.caught("ResultKeys", &err)
	return g.of.ResultKeys(ctx, prefix, now, limit)
}

// Run implements [store.Store].
func (g *guardedStore) Run(ctx context.Context, id string) (r tenon.Run, err error) {
	defer g.caught("Run", &err)
	return g.of.Run(ctx, id)
}

// Runs implements [store.Store].
func (g *guardedStore) Runs(ctx context.Context, f store.RunFilter) (list []tenon.Run, err error) {
	defer g.caught("Runs", &err)
	return g.of.Runs(ctx, f)
}

// Search implements [store.Store].
func (g *guardedStore) Search(ctx context.Context, f store.SearchFilter) (hits []store.Hit, err error) {
	defer g.caught("Search", &err)
	return g.of.Search(ctx, f)
}

// Session implements [store.Store].
func (g *guardedStore) Session(ctx context.Context, id string) (s tenon.Session, err error) {
	defer g.caught("Session", &err)
	return g.of.Session(ctx, id)
}

// Sessions implements [store.Store].
func (g *guardedStore) Sessions(ctx context.Context, f store.SessionFilter) (list []tenon.Session, err error) {
	defer g.caught("Sessions", &err)
	return g.of.Sessions(ctx, f)
}

// Settle implements [store.Store].
func (g *guardedStore) Settle(ctx context.Context, run, id string, amounts []int64) (err error) {
	defer g.caught("Settle", &err)
	return g.of.Settle(ctx, run, id, amounts)
}

// SettleSignal implements [store.Store].
func (g *guardedStore) SettleSignal(ctx context.Context, id string, seq uint64) (err error) {
	defer g.caught("SettleSignal", &err)
	return g.of.SettleSignal(ctx, id, seq)
}

// Settled implements [store.Store].
func (g *guardedStore) Settled(ctx context.Context, run, step, kind string) (s store.Signal, err error) {
	defer g.caught("Settled", &err)
	return g.of.Settled(ctx, run, step, kind)
}

// Signal implements [store.Store].
func (g *guardedStore) Signal(ctx context.Context, id string) (s store.Signal, err error) {
	defer g.caught("Signal", &err)
	return g.of.Signal(ctx, id)
}

// Signals implements [store.Store].
func (g *guardedStore) Signals(ctx context.Context, run string) (list []store.Signal, err error) {
	defer g.caught("Signals", &err)
	return g.of.Signals(ctx, run)
}

// Tallies implements [store.Store].
func (g *guardedStore) Tallies(ctx context.Context, each func(store.Tally) error) (err error) {
	defer g.caught("Tallies", &err)
	return g.of.Tallies(ctx, each)
}

// Uncounted implements [store.Store].
func (g *guardedStore) Uncounted(ctx context.Context, ended bool,
	limit int) (list []tenon.Run, total int, err error) {
	defer g.caught("Uncounted", &err)
	return g.of.Uncounted(ctx, ended, limit)
}

// Unindexed implements [store.Store].
func (g *guardedStore) Unindexed(ctx context.Context, f store.GapFilter) (list []store.Gap, total int, err error) {
	defer g.caught("Unindexed", &err)
	return g.of.Unindexed(ctx, f)
}

// UseGrant implements [store.Store].
func (g *guardedStore) UseGrant(ctx context.Context, id, run, step string, now time.Time) (used bool, err error) {
	defer g.caught("UseGrant", &err)
	return g.of.UseGrant(ctx, id, run, step, now)
}

// Acquire implements [store.Store].
func (g *guardedStore) Acquire(run string) (release func(), ok bool, err error) {
	defer g.caught("Acquire", &err)
	free, ok, err := g.of.Acquire(run)
	if free == nil {
		return nil, ok, err
	}
	return func() {
		defer g.caught("the release of a lease", nil)
		free()
	}, ok, err
}

// changedPause is the pause after which a run looks again if the store's Changed panics.
const changedPause = time.Second

// Changed implements [store.Store].
func (g *guardedStore) Changed(ctx context.Context) (c <-chan struct{}) {
	defer func() {
		if c == nil {
			later := make(chan struct{})
			time.AfterFunc(changedPause, func() { close(later) })
			c = later
		}
	}()
	defer g.caught("Changed", nil)
	return g.of.Changed(ctx)
}

// Usage implements [store.Store].
func (g *guardedStore) Usage() (u store.Usage) {
	u.Free = -1
	defer g.caught("Usage", nil)
	return g.of.Usage()
}

// Attempt implements [store.Attempts]. A store without a record of attempts says that each is the first.
func (g *guardedStore) Attempt(ctx context.Context, run, step string, n int) (fresh bool, err error) {
	defer g.caught("Attempt", &err)
	if a, ok := g.of.(store.Attempts); ok {
		return a.Attempt(ctx, run, step, n)
	}
	return true, nil
}

// Examine implements [store.Examiner].
func (g *guardedStore) Examine(ctx context.Context) (list []store.Finding) {
	defer g.caught("Examine", nil)
	if e, ok := g.of.(store.Examiner); ok {
		return e.Examine(ctx)
	}
	return nil
}

// Holder implements [store.LeaseHolders].
func (g *guardedStore) Holder(run string) (pid int) {
	defer g.caught("Holder", nil)
	if h, ok := g.of.(store.LeaseHolders); ok {
		return h.Holder(run)
	}
	return 0
}

var (
	_ store.Store        = (*guardedStore)(nil)
	_ store.Attempts     = (*guardedStore)(nil)
	_ store.Examiner     = (*guardedStore)(nil)
	_ store.LeaseHolders = (*guardedStore)(nil)
	_ store.LeaseSets    = (*guardedStore)(nil)
)
