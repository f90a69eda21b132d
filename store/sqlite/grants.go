package sqlite

import (
	"context"
	"database/sql"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// PutGrant implements [store.Grants].
func (s *Store) PutGrant(ctx context.Context, g store.Grant) error {
	if g.Principal == "" || g.Server == "" || g.Remote == "" {
		return tenon.Errorf(tenon.CodeInvalid, "store: a grant needs a principal, a server and the name of a tool")
	}
	if g.Created.IsZero() {
		g.Created = s.now()
	}
	return s.submit(ctx, func(w *writer) error {
		_, err := w.exec(`INSERT INTO grants (principal, server, remote, by, created) VALUES (?,?,?,?,?)
			ON CONFLICT DO UPDATE SET by = excluded.by, created = excluded.created`,
			string(g.Principal), g.Server, g.Remote, g.By, nanos(g.Created))
		return err
	})
}

// Grants implements [store.Grants].
func (s *Store) Grants(ctx context.Context, principal tenon.Principal) ([]store.Grant, error) {
	var list []store.Grant
	err := s.each(ctx, `SELECT principal, server, remote, by, created FROM grants
		WHERE ?1 IN ('', principal) ORDER BY principal, server, remote`, []any{string(principal)}, func(rows *sql.Rows) error {
		var g store.Grant
		var created int64
		if err := rows.Scan(&g.Principal, &g.Server, &g.Remote, &g.By, &created); err != nil {
			return s.readError(ctx, err)
		}
		g.Created = fromNanos(created)
		list = append(list, g)
		return nil
	})
	return list, err
}

// DeleteGrant implements [store.Grants].
func (s *Store) DeleteGrant(ctx context.Context, principal tenon.Principal, server, remote string) error {
	return s.submit(ctx, func(w *writer) error {
		n, err := w.exec("DELETE FROM grants WHERE principal = ? AND server = ? AND remote = ?", string(principal), server, remote)
		if err == nil && n == 0 {
			err = refuse(tenon.CodeNotFound, "%s has no grant for tool %s of server %s", principal, remote, server)
		}
		return err
	})
}
