package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
)

// Grant is what a person allowed for good: a tool that asks no more.
type Grant = store.Grant

// keepGrant keeps what a person has allowed for good. The journal has the decision
// already: a crash in between loses no more than that it is asked once more.
func (h *Host) keepGrant(ctx context.Context, who tenon.Principal, asked agent.Asking, r agent.Ruling) error {
	if r.Verdict != tenon.Allow || r.Remember != agent.RememberAlways {
		return nil
	}
	return h.store.PutGrant(ctx, Grant{Principal: who, Server: asked.Server, Remote: asked.Remote, By: r.By, Created: h.now()})
}

// Grants returns what was allowed for good, by a principal or, where that is empty,
// by anybody.
func (h *Host) Grants(ctx context.Context, principal tenon.Principal) ([]Grant, error) {
	return h.store.Grants(ctx, principal)
}

// Revoke takes a grant back: the tool asks again from now on. Errors: not_found.
func (h *Host) Revoke(ctx context.Context, g Grant) error {
	return h.store.DeleteGrant(ctx, g.Principal, g.Server, g.Remote)
}
