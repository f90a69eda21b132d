package store

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
)

// SessionGrant is an approval of a tool for the rest of a session. The journal of the run in which it was given records
// it, too, and later runs of the session inherit it from there. It applies only while the store has the row, so that it
// can be withdrawn between two questions.
type SessionGrant struct {
	ID        string // short enough to type, such as gs_4k7w2m9x
	Session   string
	Key       string // of the tool: its identity, target and definition, as package agent makes it
	Principal tenon.Principal
	Server    string // the name of the server when the approval was given, for people
	Remote    string // the tool's name at its server
	By        string
	Created   time.Time

	// Foreign says that the row has no MAC of this user, so the approval does not apply.
	Foreign bool
}

// MaxSessionGrants bounds the approvals that are listed.
const MaxSessionGrants = 1000

// SessionGrants keeps the approvals of sessions. They are deleted together with their session.
//
//	PutSessionGrant ─► SessionGranted, for each call ─► DeleteSessionGrant
type SessionGrants interface {
	// PutSessionGrant stores an approval. It replaces the one of the same session and tool. Errors: invalid (the id,
	// the session or the key is missing).
	PutSessionGrant(ctx context.Context, g SessionGrant) error
	// SessionGranted reports whether a tool is allowed in a session. A foreign or withdrawn approval does not count.
	SessionGranted(ctx context.Context, session, key string) (bool, error)
	// SessionGrants returns the approvals of a principal's sessions, or of all sessions if the principal is empty,
	// newest first, up to [MaxSessionGrants].
	SessionGrants(ctx context.Context, principal tenon.Principal) ([]SessionGrant, error)
	// DeleteSessionGrant withdraws an approval of a principal, or of any principal if it is empty. Errors: not_found.
	DeleteSessionGrant(ctx context.Context, principal tenon.Principal, id string) error
}
