package sqlite

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// importedRun is a run of an import in the form in which it is stored.
type importedRun struct {
	run   tenon.Run
	rows  []forms.Row
	blobs []blob
}

// ImportSession implements [store.Sessions].
func (s *Store) ImportSession(ctx context.Context, im store.Import) error {
	if err := forms.CheckImport(&im); err != nil {
		return err
	}
	blobs := make(map[string]blob, len(im.Blobs))
	for _, data := range im.Blobs {
		b := blobOf(data)
		blobs[forms.DigestName(b.digest)] = b
	}
	runs := make([]importedRun, len(im.Runs))
	for i, r := range im.Runs {
		x := importedRun{run: r.Run, rows: forms.RowsOf(r.Events, new([]byte))}
		forms.Sign(s.key, r.Run.ID, r.Events, x.rows)
		for _, digest := range r.Uses {
			x.blobs = append(x.blobs, blobs[digest])
		}
		runs[i] = x
	}
	sessions := append([]tenon.Session(nil), im.Sessions...)
	return s.submit(ctx, func(w *writer) error { return w.importSession(sessions, runs) })
}

func (w *writer) importSession(sessions []tenon.Session, runs []importedRun) error {
	// Everything that may refuse the import comes before the first write.
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
	for _, v := range sessions { // last, because storing the runs has updated the heads of the sessions
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
