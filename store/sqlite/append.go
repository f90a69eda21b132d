package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// position is the end of a journal.
type position struct {
	n        int64 // the number of the run's row
	seq      uint64
	chapter  int64  // the last chapter; 0 if there is none
	first    uint64 // the number of its first event
	imported bool
	base     []byte // the part of the row's MAC that does not change; nil without a key
	foreign  bool
	pending  bool // the run is known to be in the table pending
}

// Append implements [store.Journal].
func (s *Store) Append(ctx context.Context, a store.Append) error {
	if a.Create != nil && a.Create.ID != a.Run {
		return tenon.Errorf(tenon.CodeInvalid, "store: the row of run %q is appended to run %q", a.Create.ID, a.Run)
	}
	if a.Run == "" {
		return tenon.Errorf(tenon.CodeInvalid, "store: an append without a run")
	}
	var waiting []byte
	if len(a.Waiting) > 0 {
		var err error
		if waiting, err = json.Marshal(a.Waiting); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "store: what run %s waits for is not JSON: %w", a.Run, err)
		}
	}
	buf, _ := s.packs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	rows := forms.RowsOf(a.Events, buf)
	forms.Sign(s.key, a.Run, a.Events, rows)
	blobs := make([]blob, 0, len(a.Blobs)+len(a.Uses))
	for _, data := range a.Blobs {
		blobs = append(blobs, blobOf(data))
	}
	for _, digest := range a.Uses {
		sum, ok := forms.DigestOf(digest)
		if !ok {
			return forms.ErrNoBlob(digest)
		}
		blobs = append(blobs, blob{digest: sum})
	}
	mac := tallyMAC(s.key, &a)
	err := s.submit(ctx, func(w *writer) error {
		err := w.append(&a, rows, blobs, waiting)
		if err == nil && a.Create != nil && len(a.Tally) > 0 {
			err = w.counted(&a, mac)
		}
		return err
	})
	if err == nil && cap(*buf) < forms.BlobFrom { // the writer no longer uses it
		s.packs.Put(buf)
	}
	return err
}

func (w *writer) append(a *store.Append, rows []forms.Row, blobs []blob, waiting []byte) error {
	pos, err := w.positionFor(a)
	if err != nil {
		return err
	}
	// Everything that may refuse the append comes before the first write.
	switch {
	case a.Create == nil && pos == nil:
		return refuse(tenon.CodeNotFound, "no run %s", a.Run)
	case a.Create != nil && pos != nil:
		return refuse(tenon.CodeConflict, "run %s exists", a.Run)
	case pos != nil && pos.imported:
		return refuse(tenon.CodeConflict, "run %s was imported, so that nothing is added to it", a.Run)
	case pos != nil && pos.foreign:
		return refused{store.ErrForeign(a.Run)}
	}
	var last uint64
	if pos != nil {
		last = pos.seq
	}
	for i := range a.Events {
		if got, want := a.Events[i].Seq, last+1+uint64(i); got != want {
			return refuse(tenon.CodeConflict,
				"run %s: event %d cannot be appended, the next one is %d: another process appends to this run", a.Run,
				got, want)
		}
	}
	if a.Create != nil {
		if pos, err = w.create(a, blobs, waiting); err != nil {
			return err
		}
	}
	if err := w.events(pos, rows); err != nil {
		return err
	}
	if a.State != "" && a.Create == nil {
		if err := w.state(pos, a, waiting); err != nil {
			return err
		}
	}
	for id, seq := range a.Taken {
		if _, err := w.stmts.settleSignal.exec(int64(seq), id); err != nil {
			return err
		}
	}
	return nil
}

// positionFor is position for an append. To learn that a new run does not exist yet, it looks only for its row.
func (w *writer) positionFor(a *store.Append) (*position, error) {
	if a.Create != nil && w.runs[a.Run] == nil {
		if n, err := w.stmts.isRun.number(a.Run); err != nil || n == 0 {
			return nil, err
		}
	}
	return w.position(a.Run)
}

func (w *writer) position(run string) (*position, error) {
	if p := w.runs[run]; p != nil {
		return p, nil
	}
	p := &position{}
	err := w.stmts.position.scan([]any{run}, &p.n, &p.seq, &p.chapter, &p.first, &p.imported)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && w.s.key != nil {
		err = w.checkRow(run, p)
	}
	if err != nil {
		return nil, err
	}
	w.remember(run, p)
	return p, nil
}

func (w *writer) remember(run string, p *position) {
	if len(w.runs) >= maxPositions {
		clear(w.runs)
	}
	w.runs[run] = p
}

func (w *writer) create(a *store.Append, blobs []blob, waiting []byte) (*position, error) {
	r := *a.Create
	if a.State != "" {
		r.State, r.Stop = a.State, a.Stop
	}
	r.State = cmp.Or(r.State, tenon.RunWorking)
	var mark []byte
	var stored any // NULL for a run that was begun here
	if r.Imported != nil {
		var err error
		if mark, err = json.Marshal(r.Imported); err != nil {
			return nil, err
		}
		stored = mark
	}
	if a.Exclusive {
		if err := w.free(&r); err != nil {
			return nil, err
		}
	}
	for _, b := range blobs {
		if b.data != nil {
			continue
		}
		if w.there[string(b.digest)] {
			continue
		}
		var there bool
		if err := w.stmts.isBlob.scan([]any{b.digest}, &there); err != nil {
			return nil, err
		}
		if !there {
			return nil, refuse(tenon.CodeNotFound, "run %s: no blob %s", a.Run, forms.DigestName(b.digest))
		}
		w.there[string(b.digest)] = true
	}
	if r.Created.IsZero() {
		r.Created = w.s.now()
	}
	if r.Updated.IsZero() {
		r.Updated = r.Created
	}
	created, updated := forms.Nanos(r.Created), forms.Nanos(r.Updated)
	base := w.s.key.RunBase(&r, mark)
	mac := w.s.key.RunRow(base, r.ID, r.State, r.Stop, waiting, 0)
	n, err := w.stmts.insertRun.insert(r.ID, r.Session, string(r.Principal), r.Caller, r.Parent, int64(r.ParentSeq),
		r.Core, r.Agent, r.Model, r.Title,
		string(r.State), string(r.Stop), created, updated, waiting, stored, mac)
	if err != nil {
		return nil, err
	}
	if r.Session != "" && r.Caller == "" {
		if _, err := w.stmts.headSession.exec(r.Session, r.Title, r.Agent, string(r.Principal), "", r.ID, 0, 1, created,
			updated, 0, w.s.key.Session(r.Session, r.Principal)); err != nil {
			return nil, err
		}
	}
	for _, b := range blobs {
		if err := w.blob(n, b); err != nil {
			return nil, err
		}
	}
	p := &position{n: n, imported: r.Imported != nil, base: base}
	if len(a.Tally) == 0 {
		if err := w.pend(p); err != nil {
			return nil, err
		}
	}
	w.remember(r.ID, p)
	return p, nil
}

// free refuses a new run if another run of its session has not ended, or if it does not continue the session at its
// end.
func (w *writer) free(r *tenon.Run) error {
	if r.Session == "" || r.Caller != "" {
		return nil
	}
	var other string
	switch err := w.stmts.busy.scan([]any{r.Session}, &other); {
	case err == nil:
		return refused{store.ErrBusy(r.Session, other)}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	var last uint64
	head, headSeq, _, err := w.headOf(r.Session)
	if err != nil {
		return err
	}
	if headSeq == 0 && head != "" {
		p, err := w.position(head)
		if err != nil {
			return err
		}
		if p != nil {
			last = p.seq
		}
	}
	if err := store.Continues(r, head, headSeq, last); err != nil {
		return refused{err}
	}
	return nil
}

// headOf reads the head of a session and the number of its runs. They are zero if there is no such session.
func (w *writer) headOf(session string) (head string, seq uint64, runs int, err error) {
	err = w.stmts.head.scan([]any{session}, &head, &seq, &runs)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return head, seq, runs, err
}

func (w *writer) events(pos *position, rows []forms.Row) error {
	for i := range rows {
		r := &rows[i]
		var digest any
		if r.Digest != nil {
			if _, err := w.stmts.insertBlob.exec(r.Digest, r.Blob); err != nil {
				return err
			}
			digest = r.Digest
		}
		if err := w.turnTo(pos); err != nil {
			return err
		}
		last := forms.Nanos(r.Last)
		sum := eventsSum(pos.chapter, pos.seq+1, r.N, last, r.Packed, r.Digest, r.MAC)
		if err := w.stmts.insertEvents.exec(pos.chapter, int64(pos.seq+1), int64(r.N), last, r.Packed, digest, r.MAC,
			sum); err != nil {
			return err
		}
		pos.seq += uint64(r.N)
	}
	return nil
}

func (w *writer) state(pos *position, a *store.Append, waiting []byte) error {
	now := w.s.now()
	if n := len(a.Events); n > 0 {
		now = a.Events[n-1].Time
	}
	mac := w.s.key.RunRow(pos.base, a.Run, a.State, a.Stop, waiting, pos.seq)
	if _, err := w.stmts.updateRun.exec(string(a.State), string(a.Stop), waiting, forms.Nanos(now),
		mac, pos.n); err != nil {
		return err
	}
	if err := w.pend(pos); err != nil {
		return err
	}
	if a.State.Ended() {
		if _, err := w.stmts.touchSession.exec(forms.Nanos(now), pos.n); err != nil {
			return err
		}
	}
	return nil
}
