package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
)

// maxDifferences bounds what a comparison tells of.
const maxDifferences = 20

// Diff compares two tables: columns with their types and classes, row ids, and every
// cell as it is stored. How rows are cut into batches, compression, dictionaries and
// metadata do not count. It returns at most 20 differences, none for identical
// tables.
func Diff(ctx context.Context, a, b *Reader) ([]string, error) {
	return diffCells(ctx, a, b, nil)
}

// diffCells compares two tables; of the columns that are in meant it compares what the
// tools mean.
func diffCells(ctx context.Context, a, b *Reader, meant map[int]bool) ([]string, error) {
	out := diffColumns(a, b, meant)
	if len(out) > 0 {
		return out, nil
	}
	err := inStep(a, b, a.Rows(ctx), b.Rows(ctx), &out, func(_ int, x, y Cells) error {
		if x.ID != y.ID {
			out = append(out, fmt.Sprintf("row %d: row id '%s' / '%s'", x.Index, x.ID, y.ID))
		}
		for i, c := range a.columns {
			v, err := x.compared(c, meant[i])
			if err != nil {
				return err
			}
			w, err := y.compared(b.columns[i], meant[i])
			if err != nil {
				return err
			}
			if v != w {
				out = append(out, fmt.Sprintf("row %d ('%s'), column '%s': %s / %s", x.Index, x.ID, c.Name, v, w))
			}
		}
		return nil
	})
	return out, err
}

// compared writes a cell so that equal ones are equal texts: as it is stored, or what its
// tool means.
func (c Cells) compared(col Column, meant bool) (string, error) {
	if meant {
		t, err := c.Tool(col)
		return t.meaning(), err
	}
	v, err := c.Value(col, true)
	return string(v), err
}

// inStep compares the rows of two tables one by one, until there are enough
// differences, and adds one where a table has fewer rows than the other.
func inStep[T any](a, b *Reader, rowsA, rowsB iter.Seq2[T, error], out *[]string, compare func(n int, x, y T) error) error {
	nextA, stopA := iter.Pull2(rowsA)
	defer stopA()
	nextB, stopB := iter.Pull2(rowsB)
	defer stopB()
	defer func() { *out = (*out)[:min(len(*out), maxDifferences)] }() // one row may have more
	for n := 0; len(*out) < maxDifferences; n++ {
		x, errX, okX := nextA()
		y, errY, okY := nextB()
		if err := cmp.Or(errX, errY); err != nil {
			return err
		}
		if okX != okY {
			short := a
			if okX {
				short = b
			}
			*out = append(*out, fmt.Sprintf("rows: %s ends after %d", short.name, n))
			return nil
		}
		if !okX {
			return nil
		}
		if err := compare(n, x, y); err != nil {
			return err
		}
	}
	return nil
}

// diffColumns compares the columns, the first with the first.
func diffColumns(a, b *Reader, meant map[int]bool) []string {
	var out []string
	for i := range max(len(a.columns), len(b.columns)) {
		x, y := a.describe(i), b.describe(i)
		if x == y || meant[i] {
			continue
		}
		if len(out) == maxDifferences {
			break
		}
		out = append(out, fmt.Sprintf("column %d: %s / %s", i, x, y))
	}
	return out
}

// describe names a column with its type, and - for one that is not there.
func (r *Reader) describe(i int) string {
	if i >= len(r.columns) {
		return "-"
	}
	c := r.columns[i]
	s := "'" + c.Name + "' " + c.Type
	if e := extension(r.schema.Field(c.at)); e != "" {
		s += " (" + e + ")"
	}
	return s
}

// DiffTools compares what the tools of two tables mean, whatever layouts they are
// stored in and whatever their rows and columns are called: kind, name, description,
// schemas as JSON, ports, message port, files, server. The first tool column is compared
// with the first, and so on. It returns at most 20 differences.
func DiffTools(ctx context.Context, a, b *Reader) ([]string, error) {
	of, with := a.toolColumns(), b.toolColumns()
	for _, r := range []*Reader{a, b} {
		if _, err := r.Column(""); err != nil {
			return nil, err
		}
	}
	if len(of) != len(with) {
		return []string{fmt.Sprintf("tool columns: %d / %d", len(of), len(with))}, nil
	}
	var out []string
	err := inStep(a, b, a.Rows(ctx), b.Rows(ctx), &out, func(n int, x, y Cells) error {
		for i := range of {
			v, err := x.compared(of[i], true)
			if err != nil {
				return err
			}
			w, err := y.compared(with[i], true)
			if err != nil {
				return err
			}
			where := "row " + strconv.Itoa(n)
			if len(of) > 1 {
				where += ", column '" + of[i].Name + "'"
			}
			if v != w {
				out = append(out, where+": "+v+" / "+w)
			}
		}
		return nil
	})
	return out, err
}

// toolColumns are the columns whose cells are tools.
func (r *Reader) toolColumns() (list []Column) {
	for _, c := range r.columns {
		if c.IsTool() {
			list = append(list, c)
		}
	}
	return list
}

// meaning writes a tool so that equal ones are equal texts.
func (t *Tool) meaning() string {
	if t == nil {
		return "missing"
	}
	canonical := func(s string) string {
		var v any
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return s
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return s // more than one value is no JSON
		}
		b, _ := encode(v) // what was decoded can be encoded
		return string(b)
	}
	ports := func(list []Port) []Port {
		out := make([]Port, len(list))
		for i, p := range list {
			p.Spec = canonical(p.Spec)
			out[i] = p
		}
		return out
	}
	params := canonical(t.Parameters)
	if params == "" || params == "null" {
		params = "{}"
	}
	b, _ := encode([]any{t.Kind, t.Name, t.Description, params, ports(t.Inputs), ports(t.Outputs), t.Message, t.Keys, t.Server, t.Remote, t.Credential}) // plain values have JSON
	return string(b)
}
