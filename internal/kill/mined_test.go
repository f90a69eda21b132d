package kill

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// mines holds the points at which a test can let a process die: before and after every durable write of the store and
// every effect of a tool or a model. A point has a name, a number, and - (before) or + (after). For example,
// Append:started#2+ is the point after the second append of a start event.
type mines struct {
	mu   sync.Mutex
	at   string // the point at which this process dies; "" if it does not die
	log  *os.File
	seen map[string]int
}

// pass runs one operation between two points.
func (m *mines) pass(name string, does func() error) error {
	m.mu.Lock()
	m.seen[name]++
	name = fmt.Sprintf("%s#%d", name, m.seen[name])
	m.mu.Unlock()
	m.point(name + "-")
	err := does()
	m.point(name + "+")
	return err
}

func (m *mines) point(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.at {
		fmt.Fprintln(m.log, "dies", name)
		p, _ := os.FindProcess(os.Getpid()) // this process
		_ = p.Kill()
		select {} // wait for the signal; no other goroutine passes a point
	}
	fmt.Fprintln(m.log, "point", name)
}

// mined is a store with a point before and after each write. It implements every method explicitly, so that the
// compiler reports a new one. Methods that only read have no points.
type mined struct {
	s store.Store
	m *mines
}

func (s *mined) Append(ctx context.Context, a store.Append) error {
	var kinds []string
	for _, e := range a.Events {
		if n := len(kinds); n == 0 || kinds[n-1] != e.Kind {
			kinds = append(kinds, e.Kind)
		}
	}
	if len(kinds) == 0 {
		kinds = []string{"row"}
	}
	return s.m.pass("Append:"+strings.Join(kinds, ","), func() error { return s.s.Append(ctx, a) })
}

func (s *mined) PutSignal(ctx context.Context, g store.Signal) (got store.Signal, err error) {
	err = s.m.pass("PutSignal:"+g.Kind, func() error { got, err = s.s.PutSignal(ctx, g); return err })
	return got, err
}

func (s *mined) SettleSignal(ctx context.Context, id string, seq uint64) error {
	return s.m.pass("SettleSignal", func() error { return s.s.SettleSignal(ctx, id, seq) })
}

func (s *mined) PutSession(ctx context.Context, v tenon.Session) error {
	return s.m.pass("PutSession", func() error { return s.s.PutSession(ctx, v) })
}

func (s *mined) DeleteSession(ctx context.Context, id string) error {
	return s.m.pass("DeleteSession", func() error { return s.s.DeleteSession(ctx, id) })
}

func (s *mined) DeleteSessions(ctx context.Context, list []tenon.Session, progress func(int)) (gone []tenon.Session,
	err error) {
	err = s.m.pass("DeleteSessions", func() error { gone, err = s.s.DeleteSessions(ctx, list, progress); return err })
	return gone, err
}

func (s *mined) ImportSession(ctx context.Context, i store.Import) error {
	return s.m.pass("ImportSession", func() error { return s.s.ImportSession(ctx, i) })
}

func (s *mined) PutBlob(ctx context.Context, run string, data []byte) (digest string, err error) {
	err = s.m.pass("PutBlob", func() error { digest, err = s.s.PutBlob(ctx, run, data); return err })
	return digest, err
}

func (s *mined) Adopt(ctx context.Context, seen string) error {
	return s.m.pass("Adopt", func() error { return s.s.Adopt(ctx, seen) })
}

func (s *mined) PutGrant(ctx context.Context, g store.Grant) error {
	return s.m.pass("PutGrant", func() error { return s.s.PutGrant(ctx, g) })
}

func (s *mined) UseGrant(ctx context.Context, id, run, step string, now time.Time) (ok bool, err error) {
	err = s.m.pass("UseGrant", func() error { ok, err = s.s.UseGrant(ctx, id, run, step, now); return err })
	return ok, err
}

func (s *mined) DeleteGrant(ctx context.Context, p tenon.Principal, id string) error {
	return s.m.pass("DeleteGrant", func() error { return s.s.DeleteGrant(ctx, p, id) })
}

func (s *mined) Foreign(ctx context.Context) (store.Foreign, error) { return s.s.Foreign(ctx) }

func (s *mined) Reserve(ctx context.Context, run, id string, c []store.Charge) (b []store.Balance, err error) {
	err = s.m.pass("Reserve", func() error { b, err = s.s.Reserve(ctx, run, id, c); return err })
	return b, err
}

func (s *mined) Settle(ctx context.Context, run, id string, amounts []int64) error {
	return s.m.pass("Settle", func() error { return s.s.Settle(ctx, run, id, amounts) })
}

func (s *mined) Release(ctx context.Context, run string) error {
	return s.m.pass("Release", func() error { return s.s.Release(ctx, run) })
}

func (s *mined) PutResult(ctx context.Context, r store.KeptResult) error {
	return s.m.pass("PutResult", func() error { return s.s.PutResult(ctx, r) })
}

func (s *mined) Admit(ctx context.Context, key string, calls int, per, most time.Duration,
	now time.Time) (wait time.Duration, ok bool, err error) {
	err = s.m.pass("Admit", func() error { wait, ok, err = s.s.Admit(ctx, key, calls, per, most, now); return err })
	return wait, ok, err
}

func (s *mined) PutPins(ctx context.Context, pins []store.Pin, fresh bool) error {
	return s.m.pass("PutPins", func() error { return s.s.PutPins(ctx, pins, fresh) })
}

func (s *mined) DeletePins(ctx context.Context, server string, remotes ...string) error {
	return s.m.pass("DeletePins", func() error { return s.s.DeletePins(ctx, server, remotes...) })
}

func (s *mined) PutTexts(ctx context.Context, list []store.RunTexts) error {
	return s.m.pass("PutTexts", func() error { return s.s.PutTexts(ctx, list) })
}

func (s *mined) PutTallies(ctx context.Context, list []store.Tally) error {
	return s.m.pass("PutTallies", func() error { return s.s.PutTallies(ctx, list) })
}

func (s *mined) Acquire(run string) (release func(), ok bool, err error) {
	err = s.m.pass("Acquire", func() error { release, ok, err = s.s.Acquire(run); return err })
	return release, ok, err
}

func (s *mined) Close() error { return s.m.pass("Close", s.s.Close) }

// unmined lists the writes that the scenario of [TestPoints] does not use. Each value names a test that does, and says
// why that test suffices.
var unmined = map[string]string{
	"ImportSession":      "store/sqlite.TestStore: one transaction",
	"DeleteSession":      "store/sqlite.TestDeletedIsGone: one transaction",
	"DeleteSessions":     "store/sqlite.TestPrune: transactions of whole sessions",
	"Adopt":              "host.TestAdopt: one transaction, by hand only",
	"DeletePins":         "store/sqlite.TestStore: one statement, by hand only",
	"PutPins":            "store/sqlite.TestStore: one transaction; the tools of the scenario are no server's",
	"PutResult":          "host.TestCache: one transaction, of what is only a shorter way",
	"Admit":              "host.TestRate: one transaction; a turn that is lost is a call less",
	"Release":            "store/sqlite.TestStore: a host leaves it to the leases",
	"Probe":              "store/sqlite.TestProbe: one row that nobody reads",
	"PutTallies":         "store/sqlite.TestStore: one transaction, of what journals have and can be counted again",
	"PutSessionGrant":    "store/sqlite.TestStore: one transaction, before the call that it allows; without it, the next call asks",
	"DeleteSessionGrant": "store/sqlite.TestStore: one transaction, by hand only",
}

// writes returns the methods of mined that are points. It reads the source and omits methods that only
// forward.
func writes() (names []string) {
	reads := map[string]bool{"Events": true, "Run": true, "Runs": true, "Signals": true, "Signal": true,
		"Settled": true, "Session": true, "Sessions": true,
		"Blob": true, "Grants": true, "Balances": true, "Held": true, "Changed": true, "Unindexed": true,
		"Search": true, "Uncounted": true, "Tallies": true,
		"Result": true, "Pins": true, "Pin": true, "Foreign": true, "Usage": true,
		"ResultKeys": true, "SessionGrant": true, "SessionGrants": true, "SessionGranted": true}
	t := reflect.TypeFor[store.Store]()
	for i := range t.NumMethod() {
		if name := t.Method(i).Name; !reads[name] {
			names = append(names, name)
		}
	}
	return names
}

// The methods that only read.

func (s *mined) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	return s.s.Events(ctx, run, after, limit)
}
func (s *mined) Run(ctx context.Context, id string) (tenon.Run, error) { return s.s.Run(ctx, id) }
func (s *mined) Runs(ctx context.Context, f store.RunFilter) ([]tenon.Run, error) {
	return s.s.Runs(ctx, f)
}
func (s *mined) Signals(ctx context.Context, run string) ([]store.Signal, error) {
	return s.s.Signals(ctx, run)
}
func (s *mined) Signal(ctx context.Context, id string) (store.Signal, error) {
	return s.s.Signal(ctx, id)
}
func (s *mined) Settled(ctx context.Context, run, step, kind string) (store.Signal, error) {
	return s.s.Settled(ctx, run, step, kind)
}
func (s *mined) Session(ctx context.Context, id string) (tenon.Session, error) {
	return s.s.Session(ctx, id)
}
func (s *mined) Sessions(ctx context.Context, f store.SessionFilter) ([]tenon.Session, error) {
	return s.s.Sessions(ctx, f)
}
func (s *mined) Blob(ctx context.Context, digest string) ([]byte, error) {
	return s.s.Blob(ctx, digest)
}
func (s *mined) SessionGrants(ctx context.Context, p tenon.Principal) ([]store.SessionGrant, error) {
	return s.s.SessionGrants(ctx, p)
}
func (s *mined) SessionGranted(ctx context.Context, session, key string) (bool, error) {
	return s.s.SessionGranted(ctx, session, key)
}
func (s *mined) PutSessionGrant(ctx context.Context, g store.SessionGrant) error {
	return s.m.pass("PutSessionGrant", func() error { return s.s.PutSessionGrant(ctx, g) })
}
func (s *mined) DeleteSessionGrant(ctx context.Context, p tenon.Principal, id string) error {
	return s.m.pass("DeleteSessionGrant", func() error { return s.s.DeleteSessionGrant(ctx, p, id) })
}
func (s *mined) Grants(ctx context.Context, p tenon.Principal) ([]store.Grant, error) {
	return s.s.Grants(ctx, p)
}
func (s *mined) Balances(ctx context.Context, prefix string) ([]store.Balance, error) {
	return s.s.Balances(ctx, prefix)
}
func (s *mined) Unindexed(ctx context.Context, f store.GapFilter) ([]store.Gap, int, error) {
	return s.s.Unindexed(ctx, f)
}
func (s *mined) Uncounted(ctx context.Context, ended bool, limit int) ([]tenon.Run, int, error) {
	return s.s.Uncounted(ctx, ended, limit)
}
func (s *mined) Tallies(ctx context.Context, each func(store.Tally) error) error {
	return s.s.Tallies(ctx, each)
}
func (s *mined) Search(ctx context.Context, f store.SearchFilter) ([]store.Hit, error) {
	return s.s.Search(ctx, f)
}
func (s *mined) Result(ctx context.Context, key string, now time.Time) (store.KeptResult, error) {
	return s.s.Result(ctx, key, now)
}
func (s *mined) ResultKeys(ctx context.Context, prefix string, now time.Time, limit int) ([]string, error) {
	return s.s.ResultKeys(ctx, prefix, now, limit)
}
func (s *mined) Pins(ctx context.Context, server string) ([]store.Pin, error) {
	return s.s.Pins(ctx, server)
}
func (s *mined) Pin(ctx context.Context, server, remote string) (store.Pin, error) {
	return s.s.Pin(ctx, server, remote)
}
func (s *mined) Probe(ctx context.Context) error { return s.s.Probe(ctx) }
func (s *mined) Usage() store.Usage              { return s.s.Usage() }
func (s *mined) Held(run string) (bool, error)   { return s.s.Held(run) }
func (s *mined) Changed(ctx context.Context) <-chan struct{} {
	return s.s.Changed(ctx)
}

var _ store.Store = (*mined)(nil)
