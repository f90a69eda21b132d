package store

import (
	"context"
	"encoding/json"
	"time"
)

// KeptResult is a tool's result that may answer equal calls.
type KeptResult struct {
	Key     string          // equal for equal calls; chosen by the caller
	Run     string          // the run that made the call; its deletion deletes the result
	Step    string          // the step of that run
	Expires time.Time       // the time from which it is not returned
	Data    json.RawMessage // the result
}

// Results keeps results of tools for equal calls. It is bounded: expired results are removed first, then the results
// that expire first.
type Results interface {
	// PutResult stores a result and replaces an earlier one with the same key. Errors: invalid (no key or run),
	// not_found (the run), too_large (more than 1 MiB).
	PutResult(ctx context.Context, r KeptResult) error
	// Result returns the result of a key that has not expired at a time. Errors: not_found.
	Result(ctx context.Context, key string, now time.Time) (KeptResult, error)
	// ResultKeys returns up to limit keys with a prefix whose results have not expired at a time, in no order. Result
	// may yet find that a result is not the user's. Prefix must be ASCII and not empty.
	ResultKeys(ctx context.Context, prefix string, now time.Time, limit int) ([]string, error)
}

// Rates limits calls within a window of time, across all processes of the store.
type Rates interface {
	// Admit reserves the earliest time for a call, so that any window of length per has at most calls calls of the key.
	// It returns the wait until that time. If the wait would be longer than most, it reserves nothing and ok is false.
	// Errors: invalid (no key, calls not from 1 to 1000, per below 1).
	Admit(ctx context.Context, key string, calls int, per, most time.Duration, now time.Time) (wait time.Duration,
		ok bool, err error)
}

// Pin is the definition of a tool or, if Remote is empty, of its server, at its first use or last acceptance.
type Pin struct {
	Server     string          `json:"server"`
	Remote     string          `json:"remote_name,omitempty"`
	Raw        string          `json:"-"`          // digest of the definition's bytes; for a server, of all definitions
	Digest     string          `json:"digest"`     // digest of the definition in its canonical form
	Definition json.RawMessage `json:"definition"` // canonical JSON; empty in a list
	By         string          `json:"by"`
	Created    time.Time       `json:"created"`
}

// Pins keeps the definitions of tools.
type Pins interface {
	// PutPins stores definitions in one write and replaces earlier definitions of the same tools. If fresh is set,
	// an existing definition stays, so that one of two processes that use a tool first wins. A fresh pin may be
	// stored with the process's next write, before its next read, or on Close. Errors: invalid (no server or digest).
	PutPins(ctx context.Context, pins []Pin, fresh bool) error
	// Pins returns the pins of a server, or all pins if server is empty, without their definitions. They are in the
	// order of server and name.
	Pins(ctx context.Context, server string) ([]Pin, error)
	// Pin returns one pin with its definition. Errors: not_found.
	Pin(ctx context.Context, server, remote string) (Pin, error)
	// DeletePins deletes pins of a server's tools. Without remotes, it deletes the pins of the server and all its
	// tools, so that the next use pins them again. Errors: not_found (there was none of them).
	DeletePins(ctx context.Context, server string, remotes ...string) error
}
