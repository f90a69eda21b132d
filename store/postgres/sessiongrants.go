package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

const selectSessionGrants = "SELECT id, session, key, principal, server, remote, by, created, mac FROM @session_grants"

// PutSessionGrant implements [store.SessionGrants].
func (s *Store) PutSessionGrant(ctx context.Context, g store.SessionGrant) error {
	if err := forms.CheckSessionGrant(&g); err != nil {
		return err
	}
	if g.Created.IsZero() {
		g.Created = s.now()
	}
	mac := s.key.SessionGrant(&g)
	return s.single(ctx, func(t *tx) error {
		t.queue("DELETE FROM @session_grants WHERE id = $1", g.ID)
		t.queue(`INSERT INTO @session_grants (id, session, key, principal, server, remote, by, created, mac)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (session, key) DO UPDATE SET id = excluded.id,
			principal = excluded.principal, server = excluded.server, remote = excluded.remote, by = excluded.by,
			created = excluded.created, mac = excluded.mac`,
			g.ID, g.Session, g.Key, string(g.Principal), g.Server, g.Remote, g.By, forms.Nanos(g.Created), mac)
		return nil
	})
}

// SessionGranted implements [store.SessionGrants].
func (s *Store) SessionGranted(ctx context.Context, session, key string) (bool, error) {
	list, err := s.sessionGrants(ctx, " WHERE session = $1 AND key = $2", session, key)
	return len(list) == 1 && !list[0].Foreign, err
}

// SessionGrants implements [store.SessionGrants].
func (s *Store) SessionGrants(ctx context.Context, principal tenon.Principal) ([]store.SessionGrant, error) {
	return s.sessionGrants(ctx, " WHERE $1::text IN ('', principal) ORDER BY created DESC, id LIMIT $2",
		string(principal), store.MaxSessionGrants)
}

func (s *Store) sessionGrants(ctx context.Context, cond string, args ...any) (list []store.SessionGrant, err error) {
	err = s.each(ctx, selectSessionGrants+cond, args, func(rows pgx.Rows) error {
		var g store.SessionGrant
		var created int64
		var mac []byte
		err := scan(rows, &g.ID, &g.Session, &g.Key, &g.Principal, &g.Server, &g.Remote, &g.By, &created, &mac)
		g.Created = forms.FromNanos(created)
		g.Foreign = !s.key.OwnSessionGrant(&g, mac)
		list = append(list, g)
		return err
	})
	return list, err
}

// DeleteSessionGrant implements [store.SessionGrants].
func (s *Store) DeleteSessionGrant(ctx context.Context, principal tenon.Principal, id string) error {
	return s.single(ctx, func(t *tx) error {
		n, err := t.exec("DELETE FROM @session_grants WHERE id = $1 AND $2::text IN ('', principal)", id,
			string(principal))
		if err == nil && n == 0 {
			return refuse(tenon.CodeNotFound, "there is no grant %s; tenon approvals grants lists them",
				tenon.Visible(id))
		}
		return err
	})
}
