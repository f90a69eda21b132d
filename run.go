package tenon

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"
)

// RunState is the state of a run, named after the states of MCP tasks.
type RunState string

// The states of a run.
const (
	RunWorking       RunState = "working"
	RunInputRequired RunState = "input_required"
	RunCompleted     RunState = "completed"
	RunFailed        RunState = "failed"
	RunCancelled     RunState = "cancelled"
)

// Ended reports whether the state is final.
func (s RunState) Ended() bool { return s == RunCompleted || s == RunFailed || s == RunCancelled }

// Run is the row of a run: one user request up to its answer. The events are in its journal.
type Run struct {
	ID        string     `json:"id"`
	Session   string     `json:"session"`
	Principal Principal  `json:"principal,omitempty"` // the principal of the run
	Caller    string     `json:"caller,omitempty"`    // run that called this run; the id is then Caller/step
	Parent    string     `json:"parent,omitempty"`    // run whose conversation this run continues
	ParentSeq uint64     `json:"parent_seq,omitempty"`
	Core      string     `json:"core"` // logic that interprets this journal, such as "agent@1"
	Agent     string     `json:"agent,omitempty"`
	Model     string     `json:"model,omitempty"`
	Title     string     `json:"title,omitempty"` // the question, shortened
	State     RunState   `json:"state"`
	Stop      StopReason `json:"stop_reason,omitempty"`
	Seq       uint64     `json:"seq"` // number of the last event
	Created   time.Time  `json:"created"`
	Updated   time.Time  `json:"updated"`
	Waiting   []Waiting  `json:"waiting,omitempty"`  // the current waits
	Imported  *Imported  `json:"imported,omitempty"` // nil if the run was started here
	Foreign   bool       `json:"foreign,omitempty"`  // not written by the user of this store; shown but never run
}

// Imported marks a run that was imported from a file. Nothing is ever appended to such a run. Its grants do
// not count, because the content of the file cannot be verified. A run that had not ended is cancelled with
// stop reason [StopImported]; State and Waiting then hold the values of the file.
type Imported struct {
	At      time.Time `json:"at"`
	State   RunState  `json:"state,omitempty"` // empty if the run had ended
	Waiting []Waiting `json:"waiting,omitempty"`
}

// Waiting is a step of a run that waits for a signal. Data is the data of the wait command.
type Waiting struct {
	Step    string          `json:"step"`
	Since   time.Time       `json:"since"`
	Expires time.Time       `json:"expires,omitzero"` // zero for no limit
	Data    json.RawMessage `json:"data,omitempty"`
}

// Session is a conversation: a tree of runs. If a forked session has no runs yet, its Head is a run of the session from
// which it was forked.
type Session struct {
	ID        string    `json:"id"`
	Title     string    `json:"title,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Principal Principal `json:"principal,omitempty"` // principal of the session
	Parent    string    `json:"parent,omitempty"`    // session from which it was forked
	Head      string    `json:"head,omitempty"`      // run that the next question continues
	HeadSeq   uint64    `json:"head_seq,omitempty"`  // last event of Head's journal in the session; 0 for all
	Runs      int       `json:"runs"`                // number of runs, not counting called runs
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Imported  time.Time `json:"imported,omitzero"` // time of the import; zero if it was started here
	Foreign   bool      `json:"foreign,omitempty"` // its owner was not written by the user of this store
}

// Verdict is the decision of a rule or a person about a tool call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Principal identifies the acting user: a user of the HTTP API, or [PrincipalLocal]. [UserPrincipal] returns the
// principal for the name of a user.
type Principal string

// PrincipalLocal is the person at the terminal, and a Go program itself. It is also what an empty principal of a
// question or a call means. No user may have this name, because a user with it would own what they own.
const PrincipalLocal Principal = "local"

// UserPrincipal returns the principal for the name of a user of a program. Programs use it for names that they did not
// choose themselves. Errors: invalid (the name is empty, or equal to [PrincipalLocal]).
func UserPrincipal(name string) (Principal, error) {
	switch Principal(name) {
	case "":
		return "", Errorf(CodeInvalid, "the user has no name: an empty principal would be the program itself")
	case PrincipalLocal:
		return "", Errorf(CodeInvalid, "no user can have the name '%s', because the program itself has it: give the "+
			"user another name, such as 'user:%s'", name, name)
	}
	return Principal(name), nil
}

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns a new id such as "run_06d8k2w5p1v3h9q4c7xz": the prefix, followed by the time in milliseconds
// and 52 random bits in base 32. Ids sort by their time of creation.
func NewID(prefix string, now time.Time) string {
	var b [13]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails (crypto/rand)
	return prefix + "_" + strings.ToLower(idEncoding.EncodeToString(b[:]))[:20]
}

// FixedID returns an id in the form of [NewID] that is not random. In place of the random bits it contains the first 52
// bits of digest, which must have at least 7 bytes. Equal arguments result in equal ids.
func FixedID(prefix string, at time.Time, digest []byte) string {
	var b [13]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16)
	copy(b[6:], digest[:7])
	return prefix + "_" + strings.ToLower(idEncoding.EncodeToString(b[:]))[:20]
}

// Owner returns the principal of the run. Runs of older versions have no principal. They belong to the local user.
func (r *Run) Owner() Principal {
	return cmp.Or(r.Principal, PrincipalLocal)
}
