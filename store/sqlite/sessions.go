package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
)

// PutSession implements [store.Sessions].
func (s *Store) PutSession(ctx context.Context, v tenon.Session) error {
	if v.ID == "" {
		return tenon.Errorf(tenon.CodeInvalid, "store: a session needs an id")
	}
	if v.Created.IsZero() {
		v.Created = s.now()
	}
	if v.Updated.IsZero() {
		v.Updated = v.Created
	}
	return s.submit(ctx, func(w *writer) error {
		_, err := w.stmts.putSession.exec(v.ID, v.Title, v.Agent, v.Head, nanos(v.Created), nanos(v.Updated))
		return err
	})
}

const selectSessions = `SELECT id, title, agent, head, runs, created, updated FROM sessions`

// Session implements [store.Sessions].
func (s *Store) Session(ctx context.Context, id string) (tenon.Session, error) {
	list, err := s.sessions(ctx, selectSessions+" WHERE id = ?", id)
	if err != nil {
		return tenon.Session{}, err
	}
	if len(list) == 0 {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
	}
	return list[0], nil
}

// Sessions implements [store.Sessions].
func (s *Store) Sessions(ctx context.Context, limit int) ([]tenon.Session, error) {
	if limit <= 0 {
		limit = 100
	}
	return s.sessions(ctx, selectSessions+fmt.Sprint(" ORDER BY updated DESC, id DESC LIMIT ", limit))
}

func (s *Store) sessions(ctx context.Context, query string, args ...any) ([]tenon.Session, error) {
	var list []tenon.Session
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		var v tenon.Session
		var created, updated int64
		if err := rows.Scan(&v.ID, &v.Title, &v.Agent, &v.Head, &v.Runs, &created, &updated); err != nil {
			return s.readError(ctx, err)
		}
		v.Created, v.Updated = fromNanos(created), fromNanos(updated)
		list = append(list, v)
		return nil
	})
	return list, err
}

const digestPrefix = "sha256:"

func digestName(sum []byte) string { return digestPrefix + hex.EncodeToString(sum) }

// PutBlob implements [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, data []byte) (string, error) {
	b := blobOf(data)
	if err := s.submit(ctx, func(w *writer) error { return w.blob(b) }); err != nil {
		return "", err
	}
	return digestName(b.digest), nil
}

type blob struct{ digest, data []byte }

func blobOf(data []byte) blob {
	sum := sha256.Sum256(data)
	if data == nil {
		data = []byte{}
	}
	return blob{sum[:], data}
}

func (w *writer) blob(b blob) error {
	_, err := w.stmts.insertBlob.exec(b.digest, b.data)
	return err
}

// Blob implements [store.Blobs].
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	want, err := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
	if err != nil || !strings.HasPrefix(digest, digestPrefix) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %q: a digest is sha256: and 64 hex digits", digest)
	}
	var data []byte
	there := false
	err = s.each(ctx, "SELECT data FROM blobs WHERE digest = ?", []any{want}, func(rows *sql.Rows) error {
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
