package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/table"
)

// Scale of T2: rows of the tables that are joined and checked.
const (
	manyRows   = 1_000_000
	fewRows    = 100_000
	joinTables = 10 // number of tables that share the rows
)

// The children that process the tables of a directory.
const (
	concatChild = "table-concat"
	checkChild  = "table-check"
	groupChild  = "table-group"
	ingestChild = "table-ingest"
)

// measureT2 measures whether memory grows with the rows of a table. It compares the peak memory with ten
// times the rows to the peak memory with fewer rows, for joining ten tables of tools to one and for checking
// the result.
func measureT2(s *session) error {
	var few, many [2][]float64 // peak in MB of concat and of check
	for _, rows := range []int{fewRows, manyRows} {
		if err := makeToolTables(s.ctx, s.rowsDir(rows), rows); err != nil {
			return err
		}
	}
	for range s.rounds {
		for _, side := range []struct {
			rows int
			peak *[2][]float64
		}{{fewRows, &few}, {manyRows, &many}} {
			concat, check, err := s.tablePeaks(side.rows)
			if err != nil {
				return err
			}
			side.peak[0], side.peak[1] = append(side.peak[0], concat), append(side.peak[1], check)
		}
	}
	for i, verb := range []string{"concat", "check"} {
		s.add("T2."+verb, "peak memory of "+verb+" with 1,000,000 rows of tools against 100,000", "ratio",
			ratios(many[i], few[i]))
		s.add("T2."+verb+".peak", "peak memory of "+verb+" with 1,000,000 rows of tools", "MB", many[i])
	}
	return nil
}

// rowsDir returns the directory of the tables with this number of rows.
func (s *session) rowsDir(rows int) string { return filepath.Join(s.tmp, "rows-"+strconv.Itoa(rows)) }

// tablePeaks joins the tables with this number of rows and checks the result. It returns the peak memory of
// both in MB.
func (s *session) tablePeaks(rows int) (concat, check float64, err error) {
	var peaks [2]float64
	for i, what := range []string{concatChild, checkChild} {
		used, err := s.spent(s.exe, "child", what, s.rowsDir(rows))
		if err != nil {
			return 0, 0, err
		}
		if got := strings.TrimSpace(used.Out); got != strconv.Itoa(rows) {
			return 0, 0, fmt.Errorf("%s: %s rows of %d", what, got, rows)
		}
		peaks[i] = float64(used.Peak) / 1e6
	}
	return peaks[0], peaks[1], nil
}

// partOf returns the path of one of the joined tables, and wholeOf the path of the result.
func partOf(dir string, i int) string { return filepath.Join(dir, "part-"+strconv.Itoa(i)+".arrow") }

func wholeOf(dir string) string { return filepath.Join(dir, "whole.arrow") }

// makeToolTables writes the tables to be joined. As usual for tables, each names its rows Row0, Row1 and so
// on, so most rows of the result need another name.
func makeToolTables(ctx context.Context, dir string, rows int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	each := rows / joinTables
	list := make([]table.Row, each)
	for part := range joinTables {
		for i, t := range someTools(part*each, each) {
			list[i] = table.Row{ID: "Row" + strconv.Itoa(i), Tool: &table.Tool{Kind: table.MCP, Name: t.Remote,
				Description: t.Description,
				Parameters:  string(t.Input), Message: -1, Server: "https://tools.example.com/mcp", Remote: t.Remote}}
		}
		if err := table.WriteTools(ctx, partOf(dir, part), list, table.WriteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// tableChild processes the tables of a directory and prints the number of rows.
func tableChild(ctx context.Context, what, dir string, out io.Writer) error {
	var rows int64
	var err error
	switch what {
	case concatChild:
		rows, err = joinParts(ctx, dir)
	case checkChild:
		rows, err = checkWhole(ctx, dir)
	default:
		rows, err = querySales(ctx, what, dir)
	}
	if err == nil {
		_, err = fmt.Fprintln(out, rows)
	}
	return err
}

// joinParts does the work of tenon tables concat.
func joinParts(ctx context.Context, dir string) (rows int64, err error) {
	var in []*table.Reader
	defer func() {
		for _, r := range in {
			err = errors.Join(err, r.Close())
		}
	}()
	for i := range joinTables {
		r, err := table.Open(ctx, partOf(dir, i), table.Options{})
		if err != nil {
			return 0, err
		}
		in = append(in, r)
	}
	return table.Concat(ctx, wholeOf(dir), in, table.WriteOptions{})
}

// checkWhole does the work of tenon tables check. It returns the number of checked rows.
func checkWhole(ctx context.Context, dir string) (rows int64, err error) {
	r, err := table.Open(ctx, wholeOf(dir), table.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	flaws, err := r.Check(ctx)
	if err == nil && len(flaws) > 0 {
		err = fmt.Errorf("a valid table has errors: %v", flaws[0])
	}
	if err != nil {
		return 0, err
	}
	rows, _, err = r.Count(ctx) // the reader is at the end
	return rows, err
}
