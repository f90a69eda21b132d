package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
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
		_, err := w.stmts.putSession.Exec(v.ID, v.Title, v.Agent, v.Head, nanos(v.Created), nanos(v.Updated))
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
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, s.readError(ctx, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	var list []tenon.Session
	for rows.Next() {
		var v tenon.Session
		var created, updated int64
		if err := rows.Scan(&v.ID, &v.Title, &v.Agent, &v.Head, &v.Runs, &created, &updated); err != nil {
			return nil, s.readError(ctx, err)
		}
		v.Created, v.Updated = fromNanos(created), fromNanos(updated)
		list = append(list, v)
	}
	if err := rows.Err(); err != nil {
		return nil, s.readError(ctx, err)
	}
	return list, nil
}

const digestPrefix = "sha256:"

func digestName(sum []byte) string { return digestPrefix + hex.EncodeToString(sum) }

// PutBlob implements [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	if data == nil {
		data = []byte{}
	}
	err := s.submit(ctx, func(w *writer) error {
		_, err := w.stmts.insertBlob.Exec(sum[:], data)
		return err
	})
	if err != nil {
		return "", err
	}
	return digestName(sum[:]), nil
}

// Blob implements [store.Blobs].
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	want, err := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
	if err != nil || !strings.HasPrefix(digest, digestPrefix) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %q: a digest is sha256: and 64 hex digits", digest)
	}
	var data []byte
	err = s.read.QueryRowContext(ctx, "SELECT data FROM blobs WHERE digest = ?", want).Scan(&data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %s", digest)
	case err != nil:
		return nil, s.readError(ctx, err)
	}
	if sum := sha256.Sum256(data); string(sum[:]) != string(want) {
		return nil, s.damaged("blob " + digest)
	}
	return data, nil
}
