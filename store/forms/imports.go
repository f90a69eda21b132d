package forms

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// CheckImport checks the arguments of [store.Sessions.ImportSession], as far as they do not depend on the stored rows.
// Errors: invalid.
func CheckImport(im *store.Import) error {
	blobs := make(map[string]bool, len(im.Blobs))
	for _, data := range im.Blobs {
		blobs[store.Digest(data)] = true
	}
	for i := range im.Runs {
		if err := checkImported(&im.Runs[i], blobs); err != nil {
			return err
		}
	}
	for _, v := range im.Sessions {
		if v.ID == "" {
			return tenon.Errorf(tenon.CodeInvalid, "store: a session needs an id")
		}
	}
	return nil
}

func checkImported(r *store.ImportedRun, blobs map[string]bool) error {
	switch {
	case r.Run.ID == "" || r.Run.Session == "" || r.Run.Imported == nil || !r.Run.State.Ended():
		return tenon.Errorf(tenon.CodeInvalid, "store: run %q of an import needs an id, a session, the mark and an end",
			r.Run.ID)
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
		if !blobs[digest] {
			return tenon.Errorf(tenon.CodeInvalid, "store: run %s of an import needs blob %s, which is not there",
				r.Run.ID, digest)
		}
	}
	return nil
}
