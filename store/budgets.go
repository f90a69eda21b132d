package store

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
)

// Grant is a permanent permission for calls of one tool. It applies if the tool's server, target and definition are
// unchanged, and its condition, count and time allow the call.
type Grant struct {
	ID        string          `json:"id"` // short enough to type, such as gr_4k7w2m9x
	Principal tenon.Principal `json:"principal"`
	Server    string          `json:"server_id"` // the server's identity, such as "project:github"
	Name      string          `json:"server"`    // its name when the grant was given, for people
	Remote    string          `json:"remote"`    // the tool's name at its server
	// Target is the digest of the command that the server starts or the URL that it calls, or "" for a toolset
	// without a target. Definition is the digest of the tool's definition.
	Target     string    `json:"target,omitempty"`
	Definition string    `json:"definition,omitempty"`
	Condition  string    `json:"if,omitempty"`     // CEL over the call's arguments; empty: any arguments
	Uses       int       `json:"uses,omitempty"`   // how many calls it allows; 0: any number
	Used       int       `json:"used,omitempty"`   // how many of them were made; not counted if Uses is 0
	Expires    time.Time `json:"expires,omitzero"` // the time from which it no longer applies; zero: never
	By         string    `json:"by,omitempty"`
	Created    time.Time `json:"created"`

	// Foreign says that the row has no MAC of this user, so the grant never applies.
	Foreign bool `json:"foreign,omitempty"`
	// Expired says that the store has recorded the grant as expired, even if the clock was set back since.
	Expired bool `json:"-"`
}

// MaxGrants bounds the grants of a principal for one tool.
const MaxGrants = 100

// Grants keeps grants.
type Grants interface {
	// PutGrant stores a grant. It replaces grants with the same id, and grants of the same principal for the same
	// server, tool and condition. Errors: invalid (an id, principal, server or remote name is missing, a negative
	// count), limit (see [MaxGrants]).
	PutGrant(ctx context.Context, g Grant) error
	// Grants returns the grants of a principal, or all grants if the principal is empty, in the order of principal,
	// name, tool and time. Foreign grants are marked.
	Grants(ctx context.Context, principal tenon.Principal) ([]Grant, error)
	// UseGrant uses one of the calls that a grant allows, for a step of a run, and reports whether there was one. The
	// same run and step use no second one. It returns false for a grant that was revoked, has expired, is used up or is
	// foreign. A store may record that a grant has expired, so that it does not apply again if the clock is set back.
	UseGrant(ctx context.Context, id, run, step string, now time.Time) (bool, error)
	// DeleteGrant revokes a grant of a principal, or of any principal if it is empty. Errors: not_found.
	DeleteGrant(ctx context.Context, principal tenon.Principal, id string) error
}

// Budgets counts the common spending of several runs: of a session, a day, a principal. A step reserves its estimated
// cost before it begins, and settles the actual cost afterwards.
//
//	Reserve(run, step, charges) ─► the step ─► Settle(run, step, amounts)
//
// A reservation and a settlement need not be on disk when Reserve and Settle return. They are on disk when a later
// Append is, so a crash of the machine forgets a charge only together with the step that followed it.
//
// A charge is accepted if used + reserved is below its limit and either nothing is reserved, or the whole amount fits:
// used + reserved + amount ≤ limit. Therefore:
//
//   - A budget that is smaller than one estimate still lets steps begin, one at a time, until it is used up.
//   - If no step exceeds its estimate, the use of a budget never exceeds its limit, except by a single step that was
//     in flight alone.
//
// A reservation belongs to its run and counts while a process holds the run's lease. Reservations of dead processes
// are released when they would cause a refusal; Balances leaves them out at once. The actual cost of such a step is
// unknown. If the step is made again, it reserves again.
type Budgets interface {
	// Reserve reserves all charges, or none if one is refused: then its balance is marked as refused, and the error is
	// nil. Balances are in the order of the charges and include the step's own reservation. A repeated call with the
	// same run and id reserves nothing, whether settled or not, and returns the balances; refusals are not recorded. If
	// a refused balance has reservations, it may become free when other steps settle: see [Leases.Changed]. Errors:
	// invalid (no run, id or charge, no key, a repeated key, a negative amount or limit), store.
	Reserve(ctx context.Context, run, id string, charges []Charge) ([]Balance, error)
	// Settle replaces the reserved amounts by the used amounts, in the order of the charges. Only the first call has an
	// effect. Errors: invalid (another number of amounts than charges, or a negative one), not_found.
	Settle(ctx context.Context, run, id string, amounts []int64) error
	// Release ends a run's reservations: it returns the unsettled amounts, and the used amounts stay. It is for runs
	// that have ended, or are resumed by a new owner. A run without reservations is no error.
	Release(ctx context.Context, run string) error
	// Balances returns the balances whose keys have the prefix, in the order of the keys.
	Balances(ctx context.Context, prefix string) ([]Balance, error)
}

// Charge is the estimated cost of a step for one budget.
type Charge struct {
	Key    string // such as "session/ses_x/tokens" or "day/2026-11-21/local/cost"
	Amount int64  // the maximum cost, in the budget's unit
	Limit  int64  // limit of the budget; 0: the budget only counts
	// Made says that the amount is known and counts as used at once. The charge is settled, and Settle has no effect.
	// Either all charges of a reservation are made, or none. If the reservation exists and is open, because an older
	// version made it, made charges settle it.
	Made bool
}

// Balance is the state of one budget.
type Balance struct {
	Key      string `json:"key"`
	Used     int64  `json:"used"`
	Reserved int64  `json:"reserved"`
	Limit    int64  `json:"limit,omitempty"` // limit of this charge, or of the last one
	Refused  bool   `json:"refused,omitempty"`
}
