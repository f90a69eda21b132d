package host

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/table"
)

// OnlyTable is a tool table that selects tools of a host for a question: by its bytes, or by the id of a table in the
// project's folder or of an uploaded one (see [TableFile]).
type OnlyTable struct {
	Data   []byte // an Arrow file or stream
	File   string // instead of Data
	Column string // the column with the tools; "" means the last one
}

// onlyTable returns the tools of a snapshot that a table names. Rows that name no tool of the host are problems.
func (h *Host) onlyTable(ctx context.Context, t OnlyTable, s *catalog.Snapshot, problems []Problem) (*catalog.Snapshot,
	[]Problem, error) {
	path, o := "-", table.Options{Name: "the tool table", Stdin: bytes.NewReader(t.Data),
		Legacy: h.config.Tables.WithDefaults().Legacy.Read}
	if t.File != "" {
		var err error
		if path, err = h.tablePath(t.File); err != nil {
			return nil, problems, err
		}
		o.Name = t.File
	}
	subset, err := h.config.Subset(ctx, path, t.Column, o)
	if err != nil {
		return nil, problems, tenon.Errorf(tenon.ErrorCode(err), "the tool table: %w", err)
	}
	for _, left := range subset.Left {
		problems = append(problems, Problem{Err: tenon.Errorf(tenon.CodeNotFound,
			"the tool table: %s; the row is left out", left)})
	}
	if subset.More > 0 {
		problems = append(problems, Problem{Err: tenon.Errorf(tenon.CodeNotFound,
			"the tool table: also left out: %s", counted(subset.More, "more row"))})
	}
	only := s.Only(subset.Has)
	if n := len(only.Tools()); n == 0 && subset.Rows > 0 {
		return nil, problems, tenon.Errorf(tenon.CodeNotFound, "the tool table names %s, and this configuration "+
			"offers none of them", counted(subset.Rows, "tool"))
	}
	return only, problems, nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
