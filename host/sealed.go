package host

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/store"
)

// sealing is a store that keeps encrypted what redact rules name. The journal has to
// have the arguments of a call whole, since it must be able to run it; so whatever
// part of it speaks of a named argument is encrypted as a whole: the data of an event,
// of a signal, of what a run waits for. What was encrypted once is read also where no
// rule names it any more. docs/decisions/0008 says where the key lies.
type sealing struct {
	store.Store
	vault *oauth.Vault // nil: there is no place for a key
	names [][]byte     // in lower case; none: nothing is encrypted anew
}

// sealedMark begins what is encrypted. No event, signal or wait of a core's has such a
// member.
const sealedMark = `{"sealed":`

func newSealing(s store.Store, vault *oauth.Vault, names []string) *sealing {
	w := &sealing{Store: s, vault: vault}
	for _, n := range names {
		w.names = append(w.names, bytes.ToLower([]byte(n)))
	}
	return w
}

// speaks reports whether data may hold a named value: its name stands in it, or could,
// since characters of it are written as escapes.
func (w *sealing) speaks(data []byte) bool {
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

func (w *sealing) seal(data json.RawMessage, bound string) (json.RawMessage, error) {
	if !w.speaks(data) {
		return data, nil
	}
	if w.vault == nil {
		return nil, tenon.Errorf(tenon.CodeStore, "what policy redact names cannot be encrypted: there is no place for the key; set HOME, or name a folder with --home")
	}
	b, err := w.vault.Seal(data, bound)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(sealedMark), b...), '}'), nil
}

func (w *sealing) open(data json.RawMessage, bound string) (json.RawMessage, error) {
	if !bytes.HasPrefix(data, []byte(sealedMark)) {
		return data, nil
	}
	if w.vault == nil {
		return nil, tenon.Errorf(tenon.CodeStore, "a part of the journal is encrypted, and there is no place where the key could be")
	}
	return w.vault.Open(bytes.TrimSuffix(data[len(sealedMark):], []byte("}")), bound)
}

func (w *sealing) sealEvents(run string, events []tenon.Event) ([]tenon.Event, error) {
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

// boundTo is where a part of a journal belongs.
func boundTo(run, kind, step string) string {
	return "journal\x00" + run + "\x00" + kind + "\x00" + step
}

// Append implements [store.Journal].
func (w *sealing) Append(ctx context.Context, a store.Append) (err error) {
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
func (w *sealing) ImportSession(ctx context.Context, i store.Import) (err error) {
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
func (w *sealing) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	events, err := w.Store.Events(ctx, run, after, limit)
	for i := range events {
		if events[i].Data, err = w.open(events[i].Data, boundTo(run, events[i].Kind, events[i].Step)); err != nil {
			return nil, tenon.Errorf(tenon.ErrorCode(err), "run %s: event %d: %w", run, events[i].Seq, err)
		}
	}
	return events, err
}

// Run implements [store.Journal].
func (w *sealing) Run(ctx context.Context, id string) (tenon.Run, error) {
	r, err := w.Store.Run(ctx, id)
	if err != nil {
		return r, err
	}
	return r, w.openWaiting(&r)
}

// Runs implements [store.Journal].
func (w *sealing) Runs(ctx context.Context, f store.RunFilter) ([]tenon.Run, error) {
	list, err := w.Store.Runs(ctx, f)
	for i := range list {
		if err := w.openWaiting(&list[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

func (w *sealing) openWaiting(r *tenon.Run) (err error) {
	for i := range r.Waiting {
		v := &r.Waiting[i]
		if v.Data, err = w.open(v.Data, boundTo(r.ID, "waiting", v.Step)); err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "run %s: what step %s waits for: %w", r.ID, v.Step, err)
		}
	}
	return nil
}

// PutSignal implements [store.Inbox].
func (w *sealing) PutSignal(ctx context.Context, g store.Signal) (store.Signal, error) {
	data, err := w.seal(g.Data, boundTo(g.Run, g.Kind, g.Step))
	if err != nil {
		return store.Signal{}, err
	}
	g.Data = data
	return w.openSignal(w.Store.PutSignal(ctx, g))
}

// Signal implements [store.Inbox].
func (w *sealing) Signal(ctx context.Context, id string) (store.Signal, error) {
	return w.openSignal(w.Store.Signal(ctx, id))
}

// Settled implements [store.Inbox].
func (w *sealing) Settled(ctx context.Context, run, step, kind string) (store.Signal, error) {
	return w.openSignal(w.Store.Settled(ctx, run, step, kind))
}

// Signals implements [store.Inbox].
func (w *sealing) Signals(ctx context.Context, run string) ([]store.Signal, error) {
	list, err := w.Store.Signals(ctx, run)
	for i := range list {
		if list[i], err = w.openSignal(list[i], err); err != nil {
			return nil, err
		}
	}
	return list, err
}

func (w *sealing) openSignal(g store.Signal, err error) (store.Signal, error) {
	if err == nil {
		g.Data, err = w.open(g.Data, boundTo(g.Run, g.Kind, g.Step))
	}
	return g, err
}

var _ store.Store = (*sealing)(nil)
