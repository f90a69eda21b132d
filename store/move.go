package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// Movable is a store whose rows can be copied into a store of another database; see package store/copying. Both are
// opened by the process that copies, with a setting that allows these methods. A row has one value for each column of
// its table: string, int64, []byte, or nil.
type Movable interface {
	// Move returns the mark of the store.
	Move(ctx context.Context) (Move, error)
	// SetMove replaces the mark. When it returns, all earlier writes have ended, and later ones of other processes are
	// refused as long as there is a mark.
	SetMove(ctx context.Context, m Move) error
	// Count returns the number of rows of a table.
	Count(ctx context.Context, table string) (int64, error)
	// Rows calls each with the rows of a table from the given number on, always in the same order, and returns its
	// first error. Each must not keep the row. Errors: store (a damaged row).
	Rows(ctx context.Context, table string, from int64, each func(row []any) error) error
	// Fill inserts rows in one transaction. Existing rows stay.
	Fill(ctx context.Context, table string, rows [][]any) error
}

// Move is the mark of a store that takes part in a copy. The zero value means that it does not.
type Move struct {
	State string    `json:"state"`
	Store string    `json:"store"` // the other store, for people
	Time  time.Time `json:"time"`
}

// The states of a [Move].
const (
	Moved   = "moved"   // its rows are, or were, copied into the other store; nothing is written to it
	Filling = "filling" // the rows of the other store are being copied into it; it cannot be used yet
)

// MoveMark begins the name of the mark, which is in the table of marks.
var MoveMark = []byte("tenon move \x00")

// Name returns the name of the mark in the table of marks.
func (m Move) Name() []byte {
	b, _ := json.Marshal(m) // strings and a time can always be encoded
	return append(bytes.Clone(MoveMark), b...)
}

// ReadMove reads the name of a mark. If it cannot read the name, it returns the state Moved, so that nothing is
// written to the store.
func ReadMove(name []byte) Move {
	m := Move{}
	if json.Unmarshal(bytes.TrimPrefix(name, MoveMark), &m) != nil || m.State != Filling {
		m.State = Moved
	}
	return m
}

// Err returns the error of a write to a store with the mark, or of opening a store that is being filled. It returns
// nil for a store without a mark. Errors: store.
func (m Move) Err(name string) error {
	when := ""
	if !m.Time.IsZero() {
		when = " on " + m.Time.UTC().Format(time.DateTime)
	}
	switch m.State {
	case "":
		return nil
	case Filling:
		return tenon.Errorf(tenon.CodeStore, "store %s: it is a copy of %s that is not complete; finish it with the "+
			"same 'tenon store copy' command", name, tenon.Visible(m.Store))
	}
	return tenon.Errorf(tenon.CodeStore, "store %s: nothing is written, because it was moved to %s%s; use that store "+
		"(store.postgres or store.path in tenon.yaml), or take an incomplete move back: tenon store copy --undo", name,
		tenon.Visible(m.Store), when)
}
