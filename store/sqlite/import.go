package sqlite

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// importedRun is a run of an import in the form in which it is stored.
type importedRun struct {
	run   tenon.Run
	rows  []row
	blobs []blob
}

// ImportSession implements [store.Sessions].
func (s *Store) ImportSession(ctx context.Context, im store.Import) error {
	blobs := make(map[string]blob, len(im.Blobs))
	for _, data := range im.Blobs {
		b := blobOf(data)
		blobs[digestName(b.digest)] = b
	}
	runs := make([]importedRun, len(im.Runs))
	for i, r := range im.Runs {
		x := importedRun{run: r.Run, rows: rowsOf(r.Events, new([]byte))}
		s.sign(r.Run.ID, r.Events, x.rows)
		switch {
		case r.Run.ID == "" || r.Run.Session == "" || r.Run.Imported == nil || !r.Run.State.Ended():
			return tenon.Errorf(tenon.CodeInvalid,
				"store: run %q of an import needs an id, a session, the mark and an end", r.Run.ID)
		case len(r.Run.Waiting) > 0:
			return tenon.Errorf(tenon.CodeInvalid, "store: run %s of an import waits for something", r.Run.ID)
		}
		for j := range r.Events {
			if r.Events[j].Seq != uint64(j+1) {
				return tenon.Errorf(tenon.CodeInvalid, "store: event %d of run %s has number %d", j+1, r.Run.ID,
					r.Events[j].Seq)
			}
		}
		for _, digest := range r.Uses {
			b, ok := blobs[digest]
			if !ok {
				return tenon.Errorf(tenon.CodeInvalid, "store: run %s of an import needs blob %s, which is not there",
					r.Run.ID, digest)
			}
			x.blobs = append(x.blobs, b)
		}
		runs[i] = x
	}
	sessions := append([]tenon.Session(nil), im.Sessions...)
	for i := range sessions {
		if sessions[i].ID == "" {
			return tenon.Errorf(tenon.CodeInvalid, "store: a session needs an id")
		}
	}
	return s.submit(ctx, func(w *writer) error { return w.importSession(sessions, runs) })
}

func (w *writer) importSession(sessions []tenon.Session, runs []importedRun) error {
	// All that may refuse the import comes before the first write.
	seen := map[string]bool{}
	for _, v := range sessions {
		var there bool
		if err := w.row("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)", []any{v.ID}, &there); err != nil {
			return err
		}
		if there || seen[v.ID] {
			return refuse(tenon.CodeConflict, "session %s exists", v.ID)
		}
		seen[v.ID] = true
	}
	ids := map[string]bool{}
	for _, r := range runs {
		pos, err := w.position(r.run.ID)
		if err != nil {
			return err
		}
		if pos != nil || ids[r.run.ID] {
			return refuse(tenon.CodeConflict, "run %s exists", r.run.ID)
		}
		ids[r.run.ID] = true
		if !seen[r.run.Session] {
			return refuse(tenon.CodeInvalid, "store: run %s of an import is of session %s, which is not part of it",
				r.run.ID, r.run.Session)
		}
	}
	for _, r := range runs {
		pos, err := w.create(&store.Append{Create: &r.run, Run: r.run.ID}, r.blobs, nil)
		if err != nil {
			return err
		}
		if err := w.events(pos, r.rows); err != nil {
			return err
		}
	}
	for _, v := range sessions { // last: the runs have become heads on their way
		if v.Created.IsZero() {
			v.Created = w.s.now()
		}
		if v.Updated.IsZero() {
			v.Updated = v.Created
		}
		if err := w.putSession(v); err != nil {
			return err
		}
	}
	return nil
}
