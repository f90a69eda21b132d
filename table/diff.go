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

// maxDifferences bounds the differences that a comparison returns.
const maxDifferences = 20

// Diff compares two tables: columns with their types and classes, row ids, and all cells as they
// are stored. It ignores the boundaries of batches, compression, dictionaries and metadata. It
// returns at most 20 differences, and none if the tables are equal.
func Diff(ctx context.Context, a, b *Reader) ([]string, error) {
	return diffCells(ctx, a, b, nil)
}

// diffCells compares two tables. meant contains the columns whose tools are compared by their
// meaning.
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

// compared formats a cell for comparison: equal cells have equal texts. If meant is true, it
// formats the meaning of the tool, otherwise the stored value.
func (c Cells) compared(col Column, meant bool) (string, error) {
	if meant {
		t, err := c.Tool(col)
		return t.meaning(), err
	}
	v, err := c.Value(col, true)
	return string(v), err
}

// inStep compares the rows of two tables pairwise until it has enough differences. If one table has
// fewer rows, it adds a difference.
func inStep[T any](a, b *Reader, rowsA, rowsB iter.Seq2[T, error], out *[]string,
	compare func(n int, x, y T) error) error {
	nextA, stopA := iter.Pull2(rowsA)
	defer stopA()
	nextB, stopB := iter.Pull2(rowsB)
	defer stopB()
	defer func() { *out = (*out)[:min(len(*out), maxDifferences)] }() // a row may have several differences
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

// diffColumns compares the columns pairwise.
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

// describe returns the name and type of a column, or - if there is no column i.
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

// DiffTools compares the meaning of the tools of two tables: kind, name, description, schemas as
// JSON, ports, message port, files, server. It ignores layouts, row ids and the names of columns.
// The first tool column is compared with the first, and so on. It returns at most 20 differences.
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

// toolColumns returns the columns of tools.
func (r *Reader) toolColumns() (list []Column) {
	for _, c := range r.columns {
		if c.IsTool() {
			list = append(list, c)
		}
	}
	return list
}

// meaning formats a tool for comparison: tools of equal meaning have equal texts.
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
			return s // several values are not one JSON text
		}
		b, _ := encode(v) // decoded values always encode
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
	b, _ := encode([]any{ // plain values always encode
		t.Kind, t.Name, t.Description, params, ports(t.Inputs), ports(t.Outputs), t.Message,
		t.Keys, t.Server, t.Remote, t.Credential,
	})
	return string(b)
}
