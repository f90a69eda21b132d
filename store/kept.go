package store

import (
	"context"
	"encoding/json"
	"time"
)

// KeptResult is a tool's result that may stand for an equal call.
type KeptResult struct {
	Key     string          // of what makes two calls equal; the caller's
	Run     string          // that made the call; the result goes with it when it is deleted
	Step    string          // of that run
	Expires time.Time       // it is not given out from then on
	Data    json.RawMessage // what is kept
}

// Results keeps results of tools for calls that are equal. It is bounded: what has
// expired goes first, then what expires first.
type Results interface {
	// PutResult keeps a result, in place of an earlier one of the same key. Errors:
	// invalid (no key or run), not_found (the run), too_large (more than 1 MiB).
	PutResult(ctx context.Context, r KeptResult) error
	// Result returns what is kept under a key and has not expired by a time. Errors:
	// not_found.
	Result(ctx context.Context, key string, now time.Time) (KeptResult, error)
}

// Rates counts calls within a window of time, for all processes that use the store.
type Rates interface {
	// Admit gives out a turn: at most calls of them for a key within any window of
	// length per. The turn is now where that leaves room, else the first time that
	// does: the wait until then is returned, and the turn is taken. Where the wait
	// would be longer than most, ok is false and no turn is taken. Errors: invalid
	// (no key, calls not from 1 to 1000, per below 1).
	Admit(ctx context.Context, key string, calls int, per, most time.Duration, now time.Time) (wait time.Duration, ok bool, err error)
}

// Pin is the definition of a tool, or, where Remote is empty, of its server, as it
// was when it was first used or last accepted.
type Pin struct {
	Server     string          `json:"server"`
	Remote     string          `json:"remote_name,omitempty"`
	Raw        string          `json:"-"`          // digest of the definition's bytes; of a server: of all that it had
	Digest     string          `json:"digest"`     // of the definition in its canonical form
	Definition json.RawMessage `json:"definition"` // canonical JSON; empty in a list
	By         string          `json:"by"`
	Created    time.Time       `json:"created"`
}

// Pins keeps the definitions of tools.
type Pins interface {
	// PutPins keeps definitions in one write, in place of earlier ones of the same
	// tools. Where fresh is set, one that is there already stays as it is: of two
	// processes that use a tool first, one wins; it may be stored with the process's
	// next write, or before its next read, or on Close. Errors: invalid (no server or
	// digest).
	PutPins(ctx context.Context, pins []Pin, fresh bool) error
	// Pins returns those of a server, or of all where it is empty, by server and
	// name, without their definitions.
	Pins(ctx context.Context, server string) ([]Pin, error)
	// Pin returns one with its definition. Errors: not_found.
	Pin(ctx context.Context, server, remote string) (Pin, error)
	// DeletePins forgets some tools of a server, or, where none is named, the server
	// and all its tools: the next use is the first again. Errors: not_found (there
	// was none of them).
	DeletePins(ctx context.Context, server string, remotes ...string) error
}
