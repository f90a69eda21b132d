package store

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Texts finds what was said. The index is made of journals, and behind them: who
// searches brings it up to date first. Nothing is written to it on the way of a
// run.
//
//	Unindexed ─► Events of each ─► PutText ─► Search
type Texts interface {
	// Unindexed returns up to limit runs, newest first, that have events past what
	// is indexed; limit 0 means 100.
	Unindexed(ctx context.Context, limit int) ([]Gap, error)
	// PutText indexes the texts of a run's events up to the given one, which may be
	// none. Texts of events that were indexed before are left out, so that several
	// processes may do the same at once. Calls for many runs at a time share their
	// commits. A text is kept up to [MaxText] bytes.
	// Errors: not_found (the run).
	PutText(ctx context.Context, run string, upTo uint64, texts []Text) error
	// Search returns the texts that hold all words of a query, best first.
	// Errors: invalid (no word, or too many).
	Search(ctx context.Context, f SearchFilter) ([]Hit, error)
}

// MaxText bounds one text of the index, in bytes. What comes after is not found.
const MaxText = 64 << 10

// Gap says which events of a run are not indexed: those after After, of which
// Last is the last one now.
type Gap struct {
	Run   string
	After uint64
	Last  uint64
}

// Text is a text that a person may look for.
type Text struct {
	Seq  uint64 // of its event
	Role string // who said it: user, assistant, tool, …
	Text string
}

// SearchFilter says what to look for. Only Query is required.
type SearchFilter struct {
	// Query is what a person typed: words, and phrases in double quotes. A text is
	// found if it holds all of them, in any case, also as parts of longer words. It
	// has no operators. At most 32 words and 1,000 bytes.
	Query     string
	Principal tenon.Principal
	Session   string
	Limit     int // 0 means 20
}

// Hit is a text that was found.
type Hit struct {
	Session string  `json:"session"`
	Run     string  `json:"run"`
	Seq     uint64  `json:"seq"` // of the event
	Role    string  `json:"role"`
	Snippet string  `json:"snippet"` // about 160 characters around the first match, in one line
	Rank    float64 `json:"rank"`    // how good a match it is, larger is better; 0 for all where every word has less than 3 characters
}
