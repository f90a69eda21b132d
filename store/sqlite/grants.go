package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// selectGrants reads grants. It ignores their checksums, because a damaged grant counts as foreign.
const selectGrants = "SELECT id, principal, server, name, remote, target, definition, condition, uses, used, " +
	"expires, by, created, mac FROM grants"

// PutGrant implements [store.Grants].
func (s *Store) PutGrant(ctx context.Context, g store.Grant) error {
	switch {
	case g.ID == "" || g.Principal == "" || g.Server == "" || g.Remote == "":
		return tenon.Errorf(tenon.CodeInvalid,
			"store: a grant needs an id, a principal, a server and the name of a tool")
	case g.Uses < 0 || g.Used < 0:
		return tenon.Errorf(tenon.CodeInvalid, "store: grant %s has a negative count", g.ID)
	}
	if g.Created.IsZero() {
		g.Created = s.now()
	}
	g.Foreign = false
	mac := s.key.Grant(&g)
	return s.submit(ctx, func(w *writer) error {
		if err := w.replaceGrants(&g); err != nil {
			return err
		}
		var n int
		if err := w.row("SELECT count(*) FROM grants WHERE principal = ? AND server = ? AND remote = ?",
			[]any{string(g.Principal), g.Server, g.Remote}, &n); err != nil {
			return err
		}
		if n >= store.MaxGrants {
			return refuse(tenon.CodeLimit,
				"%s has %d grants for tool %s already; revoke one: tenon approvals grants, tenon approvals revoke ID",
				g.Principal, n, g.Remote)
		}
		if err := w.insertGrant(&g, mac); err != nil {
			return err
		}
		_, err := w.exec("DELETE FROM grant_uses WHERE grant_id NOT IN (SELECT id FROM grants)")
		return err
	})
}

// replaceGrants deletes the grants that a new one replaces, and records in the ledger that they never apply again.
func (w *writer) replaceGrants(g *store.Grant) error {
	var old []string
	err := w.query("SELECT id FROM grants WHERE id <> ? AND principal = ? AND server = ? AND remote = ? AND "+
		"condition = ?",
		[]any{g.ID, string(g.Principal), g.Server, g.Remote, g.Condition}, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			old = append(old, id)
			return err
		})
	if err != nil {
		return err
	}
	if err := w.s.ledger.revoke(whyRevoked, old...); err != nil {
		return err
	}
	_, err = w.exec("DELETE FROM grants WHERE id = ? OR principal = ? AND server = ? AND remote = ? AND condition = ?",
		g.ID, string(g.Principal), g.Server, g.Remote, g.Condition)
	return err
}

func (w *writer) insertGrant(g *store.Grant, mac []byte) error {
	_, err := w.exec(sumsOf("grants").insert(), g.ID, string(g.Principal), g.Server, g.Name, g.Remote, g.Target,
		g.Definition, g.Condition,
		g.Uses, g.Used, forms.Nanos(g.Expires), g.By, forms.Nanos(g.Created), mac)
	return err
}

// Grants implements [store.Grants].
func (s *Store) Grants(ctx context.Context, principal tenon.Principal) ([]store.Grant, error) {
	var list []store.Grant
	err := s.each(ctx, selectGrants+" WHERE ?1 IN ('', principal) ORDER BY principal, name, remote, created, id",
		[]any{string(principal)}, func(rows *sql.Rows) error {
			g, mac, err := scanGrant(rows)
			if err != nil {
				return s.readError(ctx, err)
			}
			g.Foreign = !s.key.OwnGrant(&g, mac)
			list = append(list, g)
			return nil
		})
	if err != nil {
		return nil, err
	}
	return s.standing(list)
}

// standing returns the grants that were not revoked, with the number of their uses from the ledger.
func (s *Store) standing(list []store.Grant) ([]store.Grant, error) {
	kept := list[:0]
	for _, g := range list {
		why, used, err := s.ledger.grant(g.ID)
		switch {
		case err != nil:
			return nil, err
		case why == whyRevoked && !g.Foreign:
			continue
		}
		g.Used, g.Expired = max(g.Used, used), why == whyExpired
		kept = append(kept, g)
	}
	return kept, nil
}

// scanGrant reads a row of selectGrants.
func scanGrant(rows *sql.Rows) (g store.Grant, mac []byte, err error) {
	var expires, created int64
	err = rows.Scan(&g.ID, &g.Principal, &g.Server, &g.Name, &g.Remote, &g.Target, &g.Definition, &g.Condition,
		&g.Uses, &g.Used, &expires, &g.By, &created, &mac)
	g.Expires, g.Created = forms.FromNanos(expires), forms.FromNanos(created)
	return g, mac, err
}

// UseGrant implements [store.Grants].
func (s *Store) UseGrant(ctx context.Context, id, run, step string, now time.Time) (ok bool, err error) {
	err = s.submit(ctx, func(w *writer) (err error) {
		ok, err = w.useGrant(id, run, step, now)
		return err
	})
	return ok && err == nil, err
}

func (w *writer) useGrant(id, run, step string, now time.Time) (bool, error) {
	var g store.Grant
	var mac []byte
	err := w.query(selectGrants+" WHERE id = ?", []any{id}, func(rows *sql.Rows) (err error) {
		g, mac, err = scanGrant(rows)
		return err
	})
	if err != nil || g.ID == "" || !w.s.key.OwnGrant(&g, mac) {
		return false, err
	}
	if why, _, err := w.s.ledger.grant(id); err != nil || why != "" {
		return false, err
	}
	if !g.Expires.IsZero() && !now.Before(g.Expires) {
		return false, w.s.ledger.revoke(whyExpired, id) // so that it stays expired if the clock is set back
	}
	if g.Uses == 0 {
		return true, nil
	}
	if ok, err := w.countUse(&g, run, step); err != nil || !ok {
		return false, err
	}
	return w.s.ledger.use(id, run+"/"+step, g.Uses)
}

// countUse uses up one of the uses of a grant in the store.
func (w *writer) countUse(g *store.Grant, run, step string) (bool, error) {
	var mac []byte
	err := w.row("SELECT coalesce(mac, x'') FROM grant_uses WHERE grant_id = ? AND run = ? AND step = ?",
		[]any{g.ID, run, step}, &mac)
	switch {
	case err == nil && w.s.key.OwnUse(g.ID, run, step, mac):
		return true, nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return false, err
	case g.Used >= g.Uses:
		return false, nil
	}
	g.Used++
	uses := sumsOf("grant_uses")
	if _, err := w.exec(uses.insert()+" ON CONFLICT DO UPDATE"+uses.set("mac", "excluded.mac"),
		g.ID, run, step, w.s.key.Use(g.ID, run, step)); err != nil {
		return false, err
	}
	_, err = w.exec("UPDATE grants"+sumsOf("grants").set("used", "?1", "mac", "?2")+"WHERE id = ?3", g.Used,
		w.s.key.Grant(g), g.ID)
	return err == nil, err
}

// Attempt implements [store.Attempts].
func (s *Store) Attempt(_ context.Context, run, step string, n int) (bool, error) {
	return s.ledger.attempt(run+"/"+step, n)
}

// DeleteGrant implements [store.Grants].
func (s *Store) DeleteGrant(ctx context.Context, principal tenon.Principal, id string) error {
	return s.submit(ctx, func(w *writer) error {
		var there bool
		if err := w.row("SELECT EXISTS (SELECT 1 FROM grants WHERE id = ?1 AND ?2 IN ('', principal))",
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
		if _, err := w.exec("DELETE FROM grants WHERE id = ?", id); err != nil {
			return err
		}
		_, err := w.exec("DELETE FROM grant_uses WHERE grant_id = ?", id)
		return err
	})
}

var _ store.Attempts = (*Store)(nil)
