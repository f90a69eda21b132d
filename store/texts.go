package store

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Texts searches the messages of runs. The index is derived from the journals and may lag behind. Runs do not write to
// it. The store knows the runs that are not indexed up to their end.
//
//	Unindexed ─► Events of each ─► PutTexts ─► Search
type Texts interface {
	// Unindexed returns runs with events that are not indexed, newest first, and the number of runs that may have
	// such events. If a run has ended after its last event was indexed, its gap is empty: After equals Last. Call
	// PutTexts for it once more.
	Unindexed(ctx context.Context, f GapFilter) (gaps []Gap, total int, err error)
	// PutTexts indexes the texts of runs in one transaction, which takes much less time than one for each run. It skips
	// texts of indexed events, so that several processes may index at once, and runs that are gone. A text is stored up
	// to [MaxText] bytes.
	PutTexts(ctx context.Context, list []RunTexts) error
	// Search returns the texts that contain all words of a query, best first. Errors: invalid (no word, or too many).
	Search(ctx context.Context, f SearchFilter) ([]Hit, error)
}

// GapFilter selects runs of [Texts.Unindexed]. Zero fields select all.
type GapFilter struct {
	Session string
	Ended   bool // only runs that have ended
	Limit   int  // 0 means 100
}

// RunTexts are the texts of a run's events up to the given one; there may be none.
type RunTexts struct {
	Run   string
	UpTo  uint64
	Texts []Text
}

// MaxText is the maximum size of an indexed text, in bytes. The rest of a longer text is not found.
const MaxText = 64 << 10

// Gap names the events of a run that are not indexed: from After, exclusive, to Last, its last event now.
type Gap struct {
	Run   string
	After uint64
	Last  uint64
}

// Text is a text for the index.
type Text struct {
	Seq  uint64 // of its event
	Role string // role of the author: user, assistant, tool, …
	Text string
}

// SearchFilter selects texts. Only Query is required.
type SearchFilter struct {
	// Query has words, and phrases in double quotes. A text matches if it contains all of them, in any case, also as
	// parts of longer words. There are no operators. At most 32 words and 1,000 bytes.
	Query     string
	Principal tenon.Principal
	Session   string
	Limit     int // 0 means 20
}

// Hit is a found text.
type Hit struct {
	Session string `json:"session"`
	Run     string `json:"run"`
	Seq     uint64 `json:"seq"` // of the event
	Role    string `json:"role"`
	Snippet string `json:"snippet"` // about 160 characters around the first match, in one line
	// Rank is larger for a better match; 0 for all if every word has less than 3 characters.
	Rank float64 `json:"rank"`
}
