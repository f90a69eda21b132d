package tenon

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"
)

// RunState is the state of a run, in the words of MCP tasks.
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

// Run is one user request until its answer: a row about a journal.
type Run struct {
	ID        string     `json:"id"`
	Session   string     `json:"session"`
	Principal Principal  `json:"principal,omitempty"` // whose run it is
	Caller    string     `json:"caller,omitempty"`    // the run that called this one as a sub-agent; its id is then Caller/step
	Parent    string     `json:"parent,omitempty"`    // the run whose conversation this one continues
	ParentSeq uint64     `json:"parent_seq,omitempty"`
	Core      string     `json:"core"` // "agent@1": the logic that reads this journal
	Agent     string     `json:"agent,omitempty"`
	Model     string     `json:"model,omitempty"`
	Title     string     `json:"title,omitempty"` // the question, shortened
	State     RunState   `json:"state"`
	Stop      StopReason `json:"stop_reason,omitempty"`
	Seq       uint64     `json:"seq"` // of the last event
	Created   time.Time  `json:"created"`
	Updated   time.Time  `json:"updated"`
	Waiting   []Waiting  `json:"waiting,omitempty"`  // what it waits for
	Imported  *Imported  `json:"imported,omitempty"` // it came from a file; nil: it was begun here
}

// Imported is the mark of a run that came from a file. Nothing is ever appended to
// such a run, and what was granted in it counts for nothing: nobody here made sure
// that what the file says has happened. One that had not ended is cancelled with stop
// reason [StopImported]; State and Waiting are those of the file then.
type Imported struct {
	At      time.Time `json:"at"`
	State   RunState  `json:"state,omitempty"` // empty: the run had ended
	Waiting []Waiting `json:"waiting,omitempty"`
}

// Waiting is one step of a run that waits for a signal. Data is that of the
// wait command.
type Waiting struct {
	Step    string          `json:"step"`
	Since   time.Time       `json:"since"`
	Expires time.Time       `json:"expires,omitzero"` // zero: it waits for ever
	Data    json.RawMessage `json:"data,omitempty"`
}

// Session is a conversation: a tree of runs. In one that was forked from
// another, and not been asked anything since, Head is a run of the other one.
type Session struct {
	ID        string    `json:"id"`
	Title     string    `json:"title,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Principal Principal `json:"principal,omitempty"` // whose session it is
	Parent    string    `json:"parent,omitempty"`    // the session that it was forked from
	Head      string    `json:"head,omitempty"`      // the run that a next question continues
	HeadSeq   uint64    `json:"head_seq,omitempty"`  // the event up to which Head's journal counts; 0: all of it
	Runs      int       `json:"runs"`                // without those that runs called
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Imported  time.Time `json:"imported,omitzero"` // when it came from a file; zero: it was begun here
}

// Verdict is what a rule or a person says about a tool call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Principal names who acts: a user of the HTTP API, or "local" at a terminal.
type Principal string

// PrincipalLocal is the person at the terminal.
const PrincipalLocal Principal = "local"

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns a new id such as "run_06d8k2w5p1v3h9q4c7xz": the prefix, then
// the time in milliseconds and 52 random bits in base 32, so that ids sort by
// the time they were made.
func NewID(prefix string, now time.Time) string {
	var b [13]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails (crypto/rand)
	return prefix + "_" + strings.ToLower(idEncoding.EncodeToString(b[:]))[:20]
}
