package store

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
)

// Grant is what a person allowed for good: a tool that need not ask again.
type Grant struct {
	Principal tenon.Principal `json:"principal"`
	Server    string          `json:"server"`
	Remote    string          `json:"remote"` // the tool's name at its server
	By        string          `json:"by,omitempty"`
	Created   time.Time       `json:"created"`
}

// Grants keeps grants, one for each principal and tool.
type Grants interface {
	// PutGrant stores a grant, in place of an earlier one for the same tool.
	// Errors: invalid (a principal, server or remote name is missing).
	PutGrant(ctx context.Context, g Grant) error
	// Grants returns those of a principal, or of everybody where it is empty, in
	// the order of principal, server and tool.
	Grants(ctx context.Context, principal tenon.Principal) ([]Grant, error)
	// DeleteGrant takes a grant back. Errors: not_found.
	DeleteGrant(ctx context.Context, principal tenon.Principal, server, remote string) error
}

// Budgets counts what runs spend together: a session, a day, a principal. What a
// step may come to is reserved before it begins, and settled by what it came to.
//
//	Reserve(run, step, charges) ─► the step ─► Settle(run, step, amounts)
//
// A charge is let through where used + reserved is below its limit and either
// nothing is reserved by anybody, or it fits in whole: used + reserved + amount ≤
// limit. So
//
//   - a budget that is smaller than one estimate still lets steps begin, one at a
//     time, until it is used up;
//   - with estimates that no step goes beyond, the use of a budget never exceeds
//     its limit, except by the one step that was in flight alone.
//
// A reservation belongs to its run and counts as long as somebody has the run's
// lease: a step is in flight nowhere else. What a dead process has reserved is
// given back when the next one would be refused because of it, and Balances
// leaves it out at once. What such a step really came to nobody knows; made
// again, it reserves again.
type Budgets interface {
	// Reserve reserves all charges, or none where one is refused: its balance says
	// so, and the error is nil. Balances come in the order of the charges and
	// include what this step holds. The same run and id again reserves nothing
	// more, whether settled or not, and returns the balances; a refusal is not
	// remembered. A balance that is refused with something reserved may be free
	// later, when other steps have settled: [Leases.Changed] tells. Errors: invalid
	// (no run, id or charge, no key, a key twice, a negative amount or limit), store.
	Reserve(ctx context.Context, run, id string, charges []Charge) ([]Balance, error)
	// Settle replaces what was reserved by what was used, in the order of the
	// charges. The first one counts; later ones change nothing. Errors: invalid (as
	// many amounts as charges, none negative), not_found.
	Settle(ctx context.Context, run, id string, amounts []int64) error
	// Release ends a run's reservations: what is not settled is given back, what
	// was used stays used. It is for runs that have ended, or are taken up again by
	// their new owner. A run without any is no error.
	Release(ctx context.Context, run string) error
	// Balances returns those whose keys begin so, in their order.
	Balances(ctx context.Context, prefix string) ([]Balance, error)
}

// Charge is what a step may cost one budget.
type Charge struct {
	Key    string // such as "session/ses_x/tokens" or "day/2026-11-21/local/cost"
	Amount int64  // the most it may come to, in the budget's unit
	Limit  int64  // of the budget; 0: it is only counted
}

// Balance is the state of one budget.
type Balance struct {
	Key      string `json:"key"`
	Used     int64  `json:"used"`
	Reserved int64  `json:"reserved"`
	Limit    int64  `json:"limit,omitempty"` // of the charge, or of the last one
	Refused  bool   `json:"refused,omitempty"`
}
