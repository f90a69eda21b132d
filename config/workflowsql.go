package config

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// ValidateWorkflow reads a workflow as [ReadWorkflow] does, and compiles its queries against the known columns of
// their tables: columns of declared inputs, of the workflow's files, and of results of other queries. It runs
// nothing.
func ValidateWorkflow(path string) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := readWorkflow(path, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkQueries(); err != nil {
		return nil, nil, err
	}
	return r.w, r.pack, r.doc.Err()
}

// checkQueries compiles the queries of the workflow. Their mistakes are added to the document.
func (r readWorkflowFile) checkQueries() error {
	k := &queries{readWorkflowFile: r, known: map[string]table.QueryTable{}, more: map[string]bool{}}
	for i := range r.w.Steps {
		if s := &r.w.Steps[i]; s.SQL != "" || s.Table != nil {
			if _, err := k.step(i); err != nil {
				return err
			}
		}
	}
	return k.promises()
}

// promises compares the columns that outputs declare with the known columns of their tables.
func (k *queries) promises() error {
	for i, out := range k.w.Outputs {
		t, err := k.table(out.From)
		if err != nil {
			return err
		}
		if t.Open || k.hasMore(out.From) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(out.Columns)) {
			if slices.Contains(t.Columns, name) {
				continue
			}
			hint := "its columns: " + strings.Join(t.Columns, ", ")
			if near := tenon.Nearest(name, t.Columns); near != "" {
				hint = "did you mean '" + near + "'? " + hint
			}
			k.doc.Add(fmt.Sprintf("outputs[%d].columns.%s", i, name), fmt.Sprintf("step '%s' gives no column '%s'",
				out.From, tenon.Visible(name)), hint)
		}
	}
	return nil
}

// hasMore reports whether a table may have more columns than the known ones. An input may have additional columns,
// and a query with * passes them on.
func (k *queries) hasMore(name string) bool {
	i := slices.IndexFunc(k.w.Steps, func(s workflow.Step) bool { return s.ID == name })
	if i < 0 {
		return true
	}
	more, known := k.more[name] // known saves computing the same queries again and again
	if !known {
		more = strings.Contains(k.w.Steps[i].SQL, "*") &&
			slices.ContainsFunc(slices.Collect(maps.Values(k.w.QueryTables(i))), k.hasMore)
		k.more[name] = more
	}
	return more
}

// queries checks the queries of a workflow.
type queries struct {
	readWorkflowFile
	known map[string]table.QueryTable // by step
	more  map[string]bool             // by step: the results of hasMore
}

// table returns the known columns of a table: an input, a step, or STEP.PORT.
func (k *queries) table(name string) (table.QueryTable, error) {
	for _, in := range k.w.Inputs {
		if in.Name == name {
			return table.QueryTable{Columns: slices.Sorted(maps.Keys(in.Columns)), Open: len(in.Columns) == 0}, nil
		}
	}
	for i, s := range k.w.Steps {
		if s.ID == name {
			return k.step(i)
		}
	}
	return table.QueryTable{Open: true}, nil // a table of another workflow
}

// step returns the known columns of the table of a step, and checks the step's query. Cycles between steps have been
// excluded before.
func (k *queries) step(i int) (t table.QueryTable, err error) {
	s := &k.w.Steps[i]
	if t, ok := k.known[s.ID]; ok {
		return t, nil
	}
	switch {
	case s.Table != nil:
		t = k.source(i)
	case s.SQL != "":
		if t, err = k.query(i); err != nil {
			return t, err
		}
	default:
		t.Open = true
	}
	k.known[s.ID] = t
	return t, nil
}

func (k *queries) query(i int) (table.QueryTable, error) {
	s := &k.w.Steps[i]
	var tables []table.QueryTable
	reads := k.w.QueryTables(i)
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		t, err := k.table(reads[name])
		if err != nil {
			return t, err
		}
		t.Name = name
		tables = append(tables, t)
	}
	columns, open, wrong, err := table.CheckQuery(s.SQL, tables, slices.Sorted(maps.Keys(s.Params)))
	switch {
	case err != nil:
		return table.QueryTable{}, err
	case wrong == nil:
		return table.QueryTable{Columns: columns, Open: open}, nil
	}
	hint := ""
	if strings.HasPrefix(wrong.Text, "no such column") && slices.ContainsFunc(k.w.Inputs,
		func(in workflow.Input) bool { return len(in.Columns) > 0 && reads[in.Name] == in.Name }) {
		hint = "a column that an input has is one of its `columns`"
	}
	if name, ok := strings.CutPrefix(wrong.Text, "no such table: "); ok {
		hint = k.tableHint(name)
	}
	if wrong.Line == 0 {
		k.doc.Add(fmt.Sprintf("steps[%d].sql", i), wrong.Text, hint)
	} else {
		k.doc.addInside(fmt.Sprintf("steps[%d].sql", i), wrong.Line, wrong.Column, wrong.Text, hint)
	}
	return table.QueryTable{Open: true}, nil // do not report errors in queries that read this table
}

// tableHint suggests a table that the query can read and whose name is similar.
func (k *queries) tableHint(text string) string {
	name, known, _ := strings.Cut(text, ";")
	if hint := k.portHint(name); hint != "" || strings.Contains(known, "did you mean") {
		return hint
	}
	var names []string
	for _, in := range k.w.Inputs {
		names = append(names, in.Name)
	}
	for _, s := range k.w.Steps {
		if s.SQL != "" || s.Table != nil {
			names = append(names, s.ID)
		}
	}
	if near := tenon.Nearest(name, names); near != "" {
		return "did you mean '" + near + "'?"
	}
	return ""
}

// portHint explains how a query reads a table of a workflow that a step calls.
func (k *queries) portHint(name string) string {
	for _, s := range k.w.Steps {
		if port, ok := strings.CutPrefix(name, s.ID+"_"); ok && s.Tool != "" && port != "" {
			return fmt.Sprintf("a table that step '%s' gives has to be named for the query: tables: [%s.%s]", s.ID,
				s.ID, port)
		}
	}
	return ""
}

// maxChecked is the maximum size of a CSV file in a zip that is read completely to validate a workflow. Of a larger
// file, only the header is read.
const maxChecked = 256 << 10

// source returns the columns of the table that a step creates. It reports a file that cannot be read.
func (k *queries) source(i int) table.QueryTable {
	s := k.w.Steps[i].Table
	file, key := s.Arrow, "arrow"
	if s.CSV != "" {
		file, key = s.CSV, "csv"
	} else if s.Arrow == "" {
		return literalRows(s)
	}
	t, err := k.fileColumns(s, file)
	if err != nil {
		k.doc.Add(fmt.Sprintf("steps[%d].table.%s", i, key), err.Error(), "")
		return table.QueryTable{Open: true}
	}
	return t
}

// fileColumns returns the columns of a CSV or Arrow file of the pack. A file of a zip is not kept in memory.
func (k *queries) fileColumns(s *workflow.Source, file string) (t table.QueryTable, err error) {
	in, size, err := k.pack.Open(file)
	if err != nil {
		return t, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if s.CSV != "" {
		if k.pack.Zipped() && size > maxChecked {
			t.Columns, err = table.CSVColumns(io.LimitReader(in, maxChecked), s.Columns)
			return t, err
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return t, err
		}
		var out bytes.Buffer
		if err := table.WriteCSV(context.Background(), "-", data, s.Columns,
			table.WriteOptions{Stdout: &out}); err != nil {
			return t, err
		}
		in = io.NopCloser(&out)
	}
	copied, err := safezip.NewSpool(file, math.MaxInt64, safezip.From(in))
	if err != nil {
		return t, err
	}
	defer copied.Close() //nolint:errcheck // it was only read
	r, err := table.Open(context.Background(), "-", table.Options{Stdin: copied.Section(), Name: file})
	if err != nil {
		return t, err
	}
	for _, c := range r.Columns() {
		t.Columns = append(t.Columns, c.Name)
	}
	return t, r.Close()
}

// literalRows returns the known columns of a table of literal rows. If the rows are computed, further columns are
// possible.
func literalRows(s *workflow.Source) table.QueryTable {
	t := table.QueryTable{Columns: slices.Sorted(maps.Keys(s.Columns))}
	var rows []map[string]json.RawMessage
	if json.Unmarshal(s.Rows, &rows) != nil {
		t.Open = true
		return t
	}
	for _, row := range rows {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains(t.Columns, name) {
				t.Columns = append(t.Columns, name)
			}
		}
	}
	t.Open = len(t.Columns) == 0
	return t
}
