package sqlite

import (
	"fmt"
	"slices"
	"time"
)

// The kinds of problems that [Check] finds.
const (
	ProblemLog    = "log"    // the -wal file: SQLite ignores a part of it
	ProblemFile   = "file"   // the header or the schema of the file
	ProblemPage   = "page"   // the structure of a table or index
	ProblemRow    = "row"    // a row whose checksum does not match
	ProblemBlob   = "blob"   // data that does not match its digest
	ProblemRun    = "run"    // a journal that is incomplete
	ProblemSearch = "search" // the index of texts, which can be built again
	ProblemLedger = "ledger" // the record of revoked and used permissions, which is not a part of the store
)

// maxProblems bounds the problems of a report.
const maxProblems = 1000

// Problem is one damage in a store.
type Problem struct {
	Kind  string `json:"kind"`            // one of the constants of this file
	Table string `json:"table,omitempty"` // of a row
	Row   string `json:"row,omitempty"`   // names a row, for people
	Text  string `json:"text"`            // what is wrong
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Table != "" {
		return fmt.Sprintf("%s: %s %s: %s", p.Kind, p.Table, p.Row, p.Text)
	}
	return p.Kind + ": " + p.Text
}

// Report is the result of [Check].
type Report struct {
	Path     string `json:"path"`
	Version  int    `json:"schema"`          // of the store
	Quick    bool   `json:"quick,omitempty"` // only a part was read
	Bytes    int64  `json:"bytes"`           // of the file
	Free     int64  `json:"free_bytes"`      // that compacting gives back
	Rows     int64  `json:"rows"`            // whose checksums were compared
	Blobs    int64  `json:"blobs"`           // whose digests were compared
	Runs     int64  `json:"runs"`            // whose journals were followed
	Unsummed int64  `json:"unsummed,omitempty"`
	Ledger   int64  `json:"ledger_rows,omitempty"` // whose values were looked at
	// LedgerUnsummed is the number of the ledger's rows that an older tenon wrote, without checksums.
	LedgerUnsummed int64     `json:"ledger_unsummed,omitempty"`
	Problems       []Problem `json:"problems"`
	// More is the number of problems that are not listed.
	More int           `json:"more,omitempty"`
	Took time.Duration `json:"-"`
}

// OK reports whether no damage was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// LedgerOnly reports whether all problems are in the ledger. The store itself then has no damage.
func (r *Report) LedgerOnly() bool {
	return !r.OK() && r.More == 0 && !slices.ContainsFunc(r.Problems, func(p Problem) bool {
		return p.Kind != ProblemLedger
	})
}

func (r *Report) add(kind, format string, args ...any) {
	r.problem(Problem{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (r *Report) problem(p Problem) {
	if len(r.Problems) >= maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, p)
}
