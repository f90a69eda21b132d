package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

const selectGrants = "SELECT id, principal, server, name, remote, target, definition, condition, uses, used, " +
	"expires, expired, by, created, mac FROM @grants"

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
	return s.single(ctx, func(t *tx) error {
		tool := []any{string(g.Principal), g.Server, g.Remote}
		t.queue("SELECT pg_advisory_xact_lock(hashtextextended($1, 7430))", t.s.schema+string(g.Principal)+g.Server)
		t.queue(`DELETE FROM @grants WHERE id = $1 OR principal = $2 AND server = $3 AND remote = $4
			AND condition = $5`,
			g.ID, string(g.Principal), g.Server, g.Remote, g.Condition)
		var n int
		if err := t.row("SELECT count(*) FROM @grants WHERE principal = $1 AND server = $2 AND remote = $3", tool,
			&n); err != nil {
			return err
		}
		if n >= store.MaxGrants {
			return refuse(tenon.CodeLimit,
				"%s has %d grants for tool %s already; revoke one: tenon approvals grants, tenon approvals revoke ID",
				g.Principal, n, g.Remote)
		}
		t.queue(`INSERT INTO @grants (id, principal, server, name, remote, target, definition, condition, uses, used,
				expires, by, created, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			g.ID, string(g.Principal), g.Server, g.Name, g.Remote, g.Target, g.Definition, g.Condition, g.Uses, g.Used,
			forms.Nanos(g.Expires), g.By, forms.Nanos(g.Created), mac)
		t.queue("DELETE FROM @grant_uses WHERE grant_id NOT IN (SELECT id FROM @grants)")
		return nil
	})
}

// Grants implements [store.Grants].
func (s *Store) Grants(ctx context.Context, principal tenon.Principal) ([]store.Grant, error) {
	var list []store.Grant
	err := s.each(ctx, selectGrants+" WHERE $1::text IN ('', principal) ORDER BY principal, name, remote, created, id",
		[]any{string(principal)}, func(rows pgx.Rows) error {
			g, mac, err := scanGrant(rows)
			g.Foreign = !s.key.OwnGrant(&g, mac)
			list = append(list, g)
			return err
		})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// scanGrant reads a row of selectGrants.
func scanGrant(rows pgx.Rows) (g store.Grant, mac []byte, err error) {
	var expires, created int64
	err = scan(rows, &g.ID, &g.Principal, &g.Server, &g.Name, &g.Remote, &g.Target, &g.Definition, &g.Condition,
		&g.Uses, &g.Used, &expires, &g.Expired, &g.By, &created, &mac)
	g.Expires, g.Created = forms.FromNanos(expires), forms.FromNanos(created)
	return g, mac, err
}

// UseGrant implements [store.Grants].
func (s *Store) UseGrant(ctx context.Context, id, run, step string, now time.Time) (ok bool, err error) {
	err = s.single(ctx, func(t *tx) (err error) {
		ok, err = t.useGrant(id, run, step, now)
		return err
	})
	return ok && err == nil, err
}

func (t *tx) useGrant(id, run, step string, now time.Time) (bool, error) {
	var g store.Grant
	var mac []byte
	err := t.query(selectGrants+" WHERE id = $1 FOR UPDATE", []any{id}, func(rows pgx.Rows) (err error) {
		g, mac, err = scanGrant(rows)
		return err
	})
	if err != nil || g.ID == "" || g.Expired || !t.s.key.OwnGrant(&g, mac) {
		return false, err
	}
	if !g.Expires.IsZero() && !now.Before(g.Expires) {
		t.queue("UPDATE @grants SET expired = true WHERE id = $1", id) // remains expired even if the clock is set back
		return false, nil
	}
	if g.Uses == 0 {
		return true, nil
	}
	mac = nil
	err = t.row("SELECT mac FROM @grant_uses WHERE grant_id = $1 AND run = $2 AND step = $3", []any{id, run, step},
		&mac)
	switch {
	case err == nil && t.s.key.OwnUse(id, run, step, mac):
		return true, nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return false, err
	case g.Used >= g.Uses:
		return false, nil
	}
	g.Used++
	t.queue(`INSERT INTO @grant_uses (grant_id, run, step, mac) VALUES ($1, $2, $3, $4)
		ON CONFLICT (grant_id, run, step) DO UPDATE SET mac = excluded.mac`, id, run, step, t.s.key.Use(id, run, step))
	t.queue("UPDATE @grants SET used = $1, mac = $2 WHERE id = $3", g.Used, t.s.key.Grant(&g), id)
	return true, nil
}

// DeleteGrant implements [store.Grants].
func (s *Store) DeleteGrant(ctx context.Context, principal tenon.Principal, id string) error {
	return s.single(ctx, func(t *tx) error {
		n, err := t.exec("DELETE FROM @grants WHERE id = $1 AND $2::text IN ('', principal)", id, string(principal))
		if err == nil && n == 0 {
			return refuse(tenon.CodeNotFound, "there is no grant %s; tenon approvals grants lists them",
				tenon.Visible(id))
		}
		t.queue("DELETE FROM @grant_uses WHERE grant_id = $1", id)
		return err
	})
}
