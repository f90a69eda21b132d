package postgres

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// insertBlob stores a blob. If the blob is stored already, it only locks the row, so that nobody deletes it before the
// commit.
const insertBlob = `INSERT INTO @blobs (digest, data) VALUES ($1, $2)
	ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest WHERE false`

// blob is data with its digest. If data is nil, the blob has to be stored already.
type blob struct{ digest, data []byte }

func blobOf(data []byte) blob {
	sum := sha256.Sum256(data)
	if data == nil {
		data = []byte{}
	}
	return blob{sum[:], data}
}

// blob queues the statements that store a blob for a run. run is the primary key of the run's row.
func (t *tx) blob(run int64, b blob) {
	if b.data != nil {
		t.queue(insertBlob, b.digest, b.data)
	}
	t.queue("INSERT INTO @run_blobs (run, blob) VALUES ($1, $2) ON CONFLICT DO NOTHING", run, b.digest)
}

// haveBlobs refuses a run if a blob that it uses is missing. It locks the rows of the blobs, so that other replicas
// cannot delete them before the commit.
func (t *tx) haveBlobs(run string, blobs []blob) error {
	for _, b := range blobs {
		if b.data != nil {
			continue
		}
		var one int
		err := t.row("SELECT 1 FROM @blobs WHERE digest = $1 FOR KEY SHARE", []any{b.digest}, &one)
		if errors.Is(err, pgx.ErrNoRows) {
			return refuse(tenon.CodeNotFound, "run %s: no blob %s", run, forms.DigestName(b.digest))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PutBlob implements [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, run string, data []byte) (string, error) {
	b := blobOf(data)
	err := s.single(ctx, func(t *tx) error {
		pos, err := t.position(run)
		if err != nil {
			return err
		}
		if pos == nil {
			return refuse(tenon.CodeNotFound, "no run %s", run)
		}
		t.blob(pos.n, b)
		return nil
	})
	if err != nil {
		return "", err
	}
	return forms.DigestName(b.digest), nil
}

// Blob implements [store.Blobs].
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	want, ok := forms.DigestOf(digest)
	if !ok {
		return nil, forms.ErrNoBlob(digest)
	}
	var data []byte
	there := false
	err := s.each(ctx, "SELECT data FROM @blobs WHERE digest = $1", []any{want}, func(rows pgx.Rows) error {
		there = true
		return rows.Scan(&data)
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
