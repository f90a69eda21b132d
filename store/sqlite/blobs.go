package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// PutBlob implements [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, run string, data []byte) (string, error) {
	b := blobOf(data)
	err := s.submit(ctx, func(w *writer) error {
		pos, err := w.position(run)
		if err != nil {
			return err
		}
		if pos == nil {
			return refuse(tenon.CodeNotFound, "no run %s", run)
		}
		return w.blob(pos.n, b)
	})
	if err != nil {
		return "", err
	}
	return forms.DigestName(b.digest), nil
}

// blob is data with its digest. If data is nil, it is already stored.
type blob struct{ digest, data []byte }

func blobOf(data []byte) blob {
	sum := sha256.Sum256(data)
	if data == nil {
		data = []byte{}
	}
	return blob{sum[:], data}
}

// blob stores a blob for a run; run is the number of the run's row.
func (w *writer) blob(run int64, b blob) error {
	if b.data != nil {
		if _, err := w.stmts.insertBlob.exec(b.digest, b.data); err != nil {
			return err
		}
	}
	return w.stmts.runBlob.exec(run, b.digest)
}

// Blob implements [store.Blobs].
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	want, ok := forms.DigestOf(digest)
	if !ok {
		return nil, forms.ErrNoBlob(digest)
	}
	var data []byte
	there := false
	err := s.each(ctx, "SELECT data FROM blobs WHERE digest = ?", []any{want}, func(rows *sql.Rows) error {
		there = true
		if err := rows.Scan(&data); err != nil {
			return s.readError(ctx, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %s", digest)
	}
	if sum := sha256.Sum256(data); string(sum[:]) != string(want) {
		return nil, s.damaged("blob " + digest)
	}
	return data, nil
}
