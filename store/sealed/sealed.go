// Package sealed is a store that encrypts values which redaction rules name.
//
//	engine, host ─► sealed.Store ─► store/sqlite
//
// The journal must hold the whole arguments of a call, because a run is its journal. So a part of the journal that
// contains a named argument is encrypted as a whole: the data of an event, of a signal, of a wait. Everything else
// passes through unchanged. Data that is already encrypted can be read even if no rule names it any more.
//
// Each part is bound to its run, kind and step, so that it cannot be moved elsewhere in the store. The [Cipher] holds
// the key; docs/decisions/0008 describes where the key is stored.
package sealed

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Cipher encrypts a value and binds it to a name; only the same name decrypts it. Seal returns a JSON object.
// It must be safe for concurrent use.
type Cipher interface {
	Seal(plain []byte, bound string) ([]byte, error)
	Open(sealed []byte, bound string) ([]byte, error)
}

// Store encrypts data that may contain a named value, and passes everything else to the store that it embeds.
type Store struct {
	store.Store
	cipher Cipher
	names  [][]byte // in lower case; if empty, nothing is encrypted
}

// mark is the prefix of encrypted data. The data of events, signals and waits of cores never contain such a member.
const mark = `{"sealed":`

// New returns a store that encrypts data which may contain a member with one of the names. If cipher is nil, reading
// and writing encrypted data is an error.
func New(s store.Store, cipher Cipher, names []string) *Store {
	w := &Store{Store: s, cipher: cipher}
	for _, n := range names {
		w.names = append(w.names, bytes.ToLower([]byte(n)))
	}
	return w
}

// HeldOf implements [store.LeaseSets].
func (w *Store) HeldOf(runs []string) (map[string]bool, error) { return store.HeldOf(w.Store, runs) }

// Holder implements [store.LeaseHolders] if the embedded store does.
func (w *Store) Holder(run string) (pid int) {
	if h, ok := w.Store.(store.LeaseHolders); ok {
		pid = h.Holder(run)
	}
	return pid
}

// mayContain reports whether data may contain a named value. If the data contain escaped characters, it returns true,
// because any name may be written with escapes.
func (w *Store) mayContain(data []byte) bool {
	if len(w.names) == 0 || len(data) == 0 {
		return false
	}
	lower := bytes.ToLower(data)
	for _, n := range w.names {
		if bytes.Contains(lower, n) {
			return true
		}
	}
	return bytes.Contains(lower, []byte(`\u`))
}

func (w *Store) seal(data json.RawMessage, bound string) (json.RawMessage, error) {
	if !w.mayContain(data) {
		return data, nil
	}
	if w.cipher == nil {
		return nil, tenon.Errorf(tenon.CodeStore, "a value that redact names cannot be encrypted: "+
			"there is no place for the key; set HOME, or name a folder with --home")
	}
	b, err := w.cipher.Seal(data, bound)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(mark), b...), '}'), nil
}

func (w *Store) open(data json.RawMessage, bound string) (json.RawMessage, error) {
	if !bytes.HasPrefix(data, []byte(mark)) {
		return data, nil
	}
	if w.cipher == nil {
		return nil, tenon.Errorf(tenon.CodeStore,
			"a part of the journal is encrypted, and there is no place where the key could be")
	}
	return w.cipher.Open(bytes.TrimSuffix(data[len(mark):], []byte("}")), bound)
}

func (w *Store) sealEvents(run string, events []tenon.Event) ([]tenon.Event, error) {
	if len(w.names) == 0 {
		return events, nil
	}
	out := make([]tenon.Event, len(events))
	for i, e := range events {
		data, err := w.seal(e.Data, boundTo(run, e.Kind, e.Step))
		if err != nil {
			return nil, err
		}
		out[i], out[i].Data = e, data
	}
	return out, nil
}

// boundTo returns the name to which a part of a journal is bound.
func boundTo(run, kind, step string) string {
	return "journal\x00" + run + "\x00" + kind + "\x00" + step
}

// Append implements [store.Journal].
func (w *Store) Append(ctx context.Context, a store.Append) (err error) {
	if len(w.names) > 0 {
		if a.Events, err = w.sealEvents(a.Run, a.Events); err != nil {
			return err
		}
		waiting := make([]tenon.Waiting, len(a.Waiting))
		for i, v := range a.Waiting {
			if v.Data, err = w.seal(v.Data, boundTo(a.Run, "waiting", v.Step)); err != nil {
				return err
			}
			waiting[i] = v
		}
		if a.Waiting != nil {
			a.Waiting = waiting
		}
	}
	return w.Store.Append(ctx, a)
}

// ImportSession implements [store.Sessions].
func (w *Store) ImportSession(ctx context.Context, i store.Import) (err error) {
	runs := make([]store.ImportedRun, len(i.Runs))
	for n, r := range i.Runs {
		if r.Events, err = w.sealEvents(r.Run.ID, r.Events); err != nil {
			return err
		}
		runs[n] = r
	}
	i.Runs = runs
	return w.Store.ImportSession(ctx, i)
}

// Events implements [store.Journal].
func (w *Store) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	events, err := w.Store.Events(ctx, run, after, limit)
	for i := range events {
		if events[i].Data, err = w.open(events[i].Data, boundTo(run, events[i].Kind, events[i].Step)); err != nil {
			return nil, tenon.Errorf(tenon.ErrorCode(err), "run %s: event %d: %w", run, events[i].Seq, err)
		}
	}
	return events, err
}

// Run implements [store.Journal].
func (w *Store) Run(ctx context.Context, id string) (tenon.Run, error) {
	r, err := w.Store.Run(ctx, id)
	if err != nil {
		return r, err
	}
	return r, w.openWaiting(&r)
}

// Runs implements [store.Journal].
func (w *Store) Runs(ctx context.Context, f store.RunFilter) ([]tenon.Run, error) {
	list, err := w.Store.Runs(ctx, f)
	for i := range list {
		if err := w.openWaiting(&list[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

func (w *Store) openWaiting(r *tenon.Run) (err error) {
	for i := range r.Waiting {
		v := &r.Waiting[i]
		if v.Data, err = w.open(v.Data, boundTo(r.ID, "waiting", v.Step)); err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "run %s: what step %s waits for: %w", r.ID, v.Step, err)
		}
	}
	return nil
}

// PutSignal implements [store.Inbox].
func (w *Store) PutSignal(ctx context.Context, g store.Signal) (store.Signal, error) {
	data, err := w.seal(g.Data, boundTo(g.Run, g.Kind, g.Step))
	if err != nil {
		return store.Signal{}, err
	}
	g.Data = data
	return w.openSignal(w.Store.PutSignal(ctx, g))
}

// Signal implements [store.Inbox].
func (w *Store) Signal(ctx context.Context, id string) (store.Signal, error) {
	return w.openSignal(w.Store.Signal(ctx, id))
}

// Settled implements [store.Inbox].
func (w *Store) Settled(ctx context.Context, run, step, kind string) (store.Signal, error) {
	return w.openSignal(w.Store.Settled(ctx, run, step, kind))
}

// Signals implements [store.Inbox].
func (w *Store) Signals(ctx context.Context, run string) ([]store.Signal, error) {
	list, err := w.Store.Signals(ctx, run)
	for i := range list {
		if list[i], err = w.openSignal(list[i], err); err != nil {
			return nil, err
		}
	}
	return list, err
}

func (w *Store) openSignal(g store.Signal, err error) (store.Signal, error) {
	if err == nil {
		g.Data, err = w.open(g.Data, boundTo(g.Run, g.Kind, g.Step))
	}
	return g, err
}

var _ store.Store = (*Store)(nil)
