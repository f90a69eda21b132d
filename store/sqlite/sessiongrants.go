package sqlite

import (
	"context"
	"database/sql"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

const selectSessionGrants = "SELECT id, session, key, principal, server, remote, by, created, mac FROM session_grants"

// PutSessionGrant implements [store.SessionGrants].
func (s *Store) PutSessionGrant(ctx context.Context, g store.SessionGrant) error {
	if err := forms.CheckSessionGrant(&g); err != nil {
		return err
	}
	if g.Created.IsZero() {
		g.Created = s.now()
	}
	mac := s.key.SessionGrant(&g)
	return s.submit(ctx, func(w *writer) error {
		if _, err := w.exec("DELETE FROM session_grants WHERE id = ? OR session = ? AND key = ?", g.ID, g.Session,
			g.Key); err != nil {
			return err
		}
		_, err := w.exec(sumsOf("session_grants").insert(), g.ID, g.Session, g.Key, string(g.Principal), g.Server,
			g.Remote, g.By, forms.Nanos(g.Created), mac)
		return err
	})
}

// SessionGranted implements [store.SessionGrants].
func (s *Store) SessionGranted(ctx context.Context, session, key string) (bool, error) {
	list, err := s.sessionGrants(ctx, " WHERE session = ? AND key = ?", session, key)
	return len(list) == 1 && !list[0].Foreign, err
}

// SessionGrants implements [store.SessionGrants].
func (s *Store) SessionGrants(ctx context.Context, principal tenon.Principal) ([]store.SessionGrant, error) {
	return s.sessionGrants(ctx, " WHERE ?1 IN ('', principal) ORDER BY created DESC, id LIMIT ?2", string(principal),
		store.MaxSessionGrants)
}

// sessionGrants reads approvals, without the ones that the ledger knows as withdrawn: an older copy of the store may
// have been put back.
func (s *Store) sessionGrants(ctx context.Context, cond string, args ...any) (list []store.SessionGrant, err error) {
	err = s.each(ctx, selectSessionGrants+cond, args, func(rows *sql.Rows) error {
		var g store.SessionGrant
		var created int64
		var mac []byte
		if err := rows.Scan(&g.ID, &g.Session, &g.Key, &g.Principal, &g.Server, &g.Remote, &g.By, &created,
			&mac); err != nil {
			return s.readError(ctx, err)
		}
		g.Created = forms.FromNanos(created)
		g.Foreign = !s.key.OwnSessionGrant(&g, mac)
		list = append(list, g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for _, g := range list {
		why, _, err := s.ledger.grant(g.ID)
		if err != nil {
			return nil, err
		}
		if why == "" {
			kept = append(kept, g)
		}
	}
	return kept, nil
}

// DeleteSessionGrant implements [store.SessionGrants].
func (s *Store) DeleteSessionGrant(ctx context.Context, principal tenon.Principal, id string) error {
	return s.submit(ctx, func(w *writer) error {
		var there bool
		if err := w.row("SELECT EXISTS (SELECT 1 FROM session_grants WHERE id = ?1 AND ?2 IN ('', principal))",
			[]any{id, string(principal)}, &there); err != nil {
			return err
		}
		if !there {
			return refuse(tenon.CodeNotFound, "there is no grant %s; tenon approvals grants lists them",
				tenon.Visible(id))
		}
		// The ledger first: if the process crashes in between, the row no longer applies.
		if err := w.s.ledger.revoke(whyRevoked, id); err != nil {
			return err
		}
		_, err := w.exec("DELETE FROM session_grants WHERE id = ?", id)
		return err
	})
}
