package signed

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// The kinds of rows. The kind is part of each MAC.
const (
	kindRun     = "run 1"
	kindState   = "run state 1"
	kindEvents  = "events 1"
	kindSignal  = "signal 1"
	kindResult  = "result 1"
	kindPin     = "pin 1"
	kindGrant   = "grant 1"
	kindStore   = "store 1"
	kindListing = "listing 1"
	kindUse     = "use 1"
	kindAllowed = "session grant 1"
	kindHeld    = "reservation 1"
	kindSession = "session 1"
	kindTally   = "tally 1"
	kindLive    = "live 1"
)

// Events is a row of a journal: n events from Seq on, packed, the last of them at Last.
// Blob is the digest of what belongs to the row, if anything does.
type Events struct {
	Run    string
	Seq    uint64
	N      int
	Last   time.Time
	Packed []byte
	Blob   []byte
}

// Events returns the MAC of a row of a journal, or nil without a key.
func (k *Key) Events(e *Events) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindEvents)
	m.text(e.Run)
	m.number(int64(e.Seq))
	m.number(int64(e.N))
	m.number(nanos(e.Last))
	m.bytes(e.Packed)
	m.bytes(e.Blob)
	return k.sum(m, nil)
}

// OwnEvents reports whether a row of a journal was written with the key.
func (k *Key) OwnEvents(e *Events, mac []byte) bool { return k == nil || is(mac, k.Events(e)) }

// The row of a run is signed in two parts: what it begins with, and its state. The
// stored MAC is base, then the number of the last event when the state was written,
// then the MAC of the state.
const (
	seqAt   = Size
	stateAt = seqAt + 8
	rowSize = stateAt + Size
)

// RunBase returns the MAC of what a run begins with, or nil without a key. Imported is the mark of an imported run as
// it is stored.
func (k *Key) RunBase(r *tenon.Run, imported []byte) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindRun)
	for _, s := range [...]string{r.ID, r.Session, string(r.Principal), r.Caller, r.Parent, r.Core, r.Agent, r.Model,
		r.Title} {
		m.text(s)
	}
	m.number(int64(r.ParentSeq))
	m.number(nanos(r.Created))
	m.bytes(imported)
	return k.sum(m, nil)
}

// RunRow returns the MAC of the row of a run, or nil without a key. Base is what RunBase returned, waiting is as it
// is stored, seq is the last event of the journal.
func (k *Key) RunRow(base []byte, id string, state tenon.RunState, stop tenon.StopReason, waiting []byte,
	seq uint64) []byte {
	if k == nil {
		return nil
	}
	row := make([]byte, 0, rowSize)
	row = append(row, base...)
	row = binary.BigEndian.AppendUint64(row, seq)
	m := k.begin(kindState)
	m.bytes(base)
	m.text(id)
	m.text(string(state))
	m.text(string(stop))
	m.bytes(waiting)
	m.number(int64(seq))
	return k.sum(m, row)
}

// OwnRun reports whether the row of a run was written with the key. Its journal, of which
// r.Seq is the last event, has to reach at least as far as when the row was written.
// Waiting and imported are as they are stored.
func (k *Key) OwnRun(r *tenon.Run, waiting, imported, mac []byte) bool {
	if k == nil {
		return true
	}
	if len(mac) != rowSize || !is(mac[:Size], k.RunBase(r, imported)) {
		return false
	}
	seq := binary.BigEndian.Uint64(mac[seqAt:])
	return r.Seq >= seq && is(mac[stateAt:], k.RunRow(mac[:Size], r.ID, r.State, r.Stop, waiting, seq)[stateAt:])
}

// Signal returns the MAC of a signal, or nil without a key. The MAC does not cover whether the signal was taken.
func (k *Key) Signal(s *store.Signal) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindSignal)
	for _, t := range [...]string{s.ID, s.Run, s.Kind, s.Step, s.By} {
		m.text(t)
	}
	m.bytes(s.Data)
	m.number(nanos(s.Time))
	return k.sum(m, nil)
}

// OwnSignal reports whether a signal was written with the key.
func (k *Key) OwnSignal(s *store.Signal, mac []byte) bool { return k == nil || is(mac, k.Signal(s)) }

// Result returns the MAC of a kept result, or nil without a key.
func (k *Key) Result(r *store.KeptResult) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindResult)
	for _, t := range [...]string{r.Key, r.Run, r.Step} {
		m.text(t)
	}
	m.number(nanos(r.Expires))
	m.bytes(r.Data)
	return k.sum(m, nil)
}

// OwnResult reports whether a kept result was written with the key.
func (k *Key) OwnResult(r *store.KeptResult, mac []byte) bool {
	return k == nil || is(mac, k.Result(r))
}

// Pin returns the MAC of a pin, preceded by the digest of the pin's definition. With the digest, a list of pins
// without definitions can be checked. Pin returns nil without a key.
func (k *Key) Pin(p *store.Pin) []byte {
	if k == nil {
		return nil
	}
	sum := sha256.Sum256(p.Definition)
	return k.pin(p, sum[:])
}

func (k *Key) pin(p *store.Pin, sum []byte) []byte {
	m := k.begin(kindPin)
	for _, t := range [...]string{p.Server, p.Remote, p.Raw, p.Digest, p.By} {
		m.text(t)
	}
	m.number(nanos(p.Created))
	m.bytes(sum)
	return k.sum(m, sum[:sha256.Size:sha256.Size])
}

// OwnPin reports whether a pin was written with the key. A pin of a list has no definition; its MAC begins with the
// definition's digest.
func (k *Key) OwnPin(p *store.Pin, mac []byte) bool {
	if k == nil {
		return true
	}
	if len(mac) != sha256.Size+Size {
		return false
	}
	sum := [sha256.Size]byte(mac)
	if len(p.Definition) > 0 && sum != sha256.Sum256(p.Definition) {
		return false
	}
	return is(mac[sha256.Size:], k.pin(p, sum[:])[sha256.Size:])
}

// Grant returns the MAC of a grant, or nil without a key.
func (k *Key) Grant(g *store.Grant) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindGrant)
	for _, t := range [...]string{g.ID, string(g.Principal), g.Server, g.Name, g.Remote, g.Target, g.Definition,
		g.Condition, g.By} {
		m.text(t)
	}
	for _, n := range [...]int64{int64(g.Uses), int64(g.Used), nanos(g.Expires), nanos(g.Created)} {
		m.number(n)
	}
	return k.sum(m, nil)
}

// OwnGrant reports whether a grant was written with the key.
func (k *Key) OwnGrant(g *store.Grant, mac []byte) bool { return k == nil || is(mac, k.Grant(g)) }

// SessionGrant returns the MAC of an approval of a session, or nil without a key.
func (k *Key) SessionGrant(g *store.SessionGrant) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindAllowed)
	for _, t := range [...]string{g.ID, g.Session, g.Key, string(g.Principal), g.Server, g.Remote, g.By} {
		m.text(t)
	}
	m.number(nanos(g.Created))
	return k.sum(m, nil)
}

// OwnSessionGrant reports whether an approval of a session was written with the key.
func (k *Key) OwnSessionGrant(g *store.SessionGrant, mac []byte) bool {
	return k == nil || is(mac, k.SessionGrant(g))
}

// Use returns the MAC of the use of a grant by a step of a run, or nil without a key.
func (k *Key) Use(grant, run, step string) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindUse)
	m.text(grant)
	m.text(run)
	m.text(step)
	return k.sum(m, nil)
}

// OwnUse reports whether the use of a grant was written with the key.
func (k *Key) OwnUse(grant, run, step string, mac []byte) bool {
	return k == nil || is(mac, k.Use(grant, run, step))
}

// Held is one charge of a reservation.
type Held struct {
	Run, ID string
	N       int
	Key     string
	Amount  int64
	Open    bool // it is not settled yet
}

// Held returns the MAC of a charge of a reservation, or nil without a key.
func (k *Key) Held(h *Held) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindHeld)
	for _, t := range [...]string{h.Run, h.ID, h.Key} {
		m.text(t)
	}
	open := int64(0)
	if h.Open {
		open = 1
	}
	for _, n := range [...]int64{int64(h.N), h.Amount, open} {
		m.number(n)
	}
	return k.sum(m, nil)
}

// OwnHeld reports whether a charge of a reservation was written with the key.
func (k *Key) OwnHeld(h *Held, mac []byte) bool { return k == nil || is(mac, k.Held(h)) }

// Session returns the MAC of a session's owner, or nil without a key. The other values of the row are only for
// display: all effects of a session come from its runs.
func (k *Key) Session(id string, owner tenon.Principal) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindSession)
	m.text(id)
	m.text(string(owner))
	return k.sum(m, nil)
}

// OwnSession reports whether the owner of a session was written with the key.
func (k *Key) OwnSession(id string, owner tenon.Principal, mac []byte) bool {
	return k == nil || is(mac, k.Session(id, owner))
}

// Tally returns the MAC of a run's summary, or nil without a key.
func (k *Key) Tally(run string, seq uint64, data []byte) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindTally)
	m.text(run)
	m.number(int64(seq))
	m.bytes(data)
	return k.sum(m, nil)
}

// OwnTally reports whether a summary was written with the key.
func (k *Key) OwnTally(run string, seq uint64, data, mac []byte) bool {
	return k == nil || is(mac, k.Tally(run, seq, data))
}

// Live returns the MAC of live events of a run for a replica, or nil without a key.
func (k *Key) Live(replica, run string, events []byte) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindLive)
	m.text(replica)
	m.text(run)
	m.bytes(events)
	return k.sum(m, nil)
}

// OwnLive reports whether live events were written with the key.
func (k *Key) OwnLive(replica, run string, events, mac []byte) bool {
	return k == nil || is(mac, k.Live(replica, run, events))
}

// Mark returns the MAC of the name that a store gave itself. It is the mark by which a user's processes recognize a
// store that they have used before. Mark returns nil without a key.
func (k *Key) Mark(name []byte) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindStore)
	m.bytes(name)
	return k.sum(m, nil)
}

// OwnMark reports whether a mark was made with the key.
func (k *Key) OwnMark(name, mac []byte) bool { return k == nil || is(mac, k.Mark(name)) }

// Listing returns the MAC of what a server offered, as it is kept beside the store. Nil
// without a key.
func (k *Key) Listing(parts ...[]byte) []byte {
	if k == nil {
		return nil
	}
	m := k.begin(kindListing)
	m.number(int64(len(parts)))
	for _, p := range parts {
		m.bytes(p)
	}
	return k.sum(m, nil)
}

// nanos is how times are stored: nanoseconds since 1970, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
