package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	out := diffColumns(a, b)
	if len(out) > 0 {
		return out, nil
	}
	err := inStep(a, b, a.Rows(ctx), b.Rows(ctx), &out, func(_ int, x, y Cells) error {
		if x.ID != y.ID {
			out = append(out, fmt.Sprintf("row %d: row id '%s' / '%s'", x.Index, x.ID, y.ID))
		}
		for i, c := range a.columns {
			v, err := x.Value(c, true)
			if err != nil {
				return err
			}
			w, err := y.Value(b.columns[i], true)
			if err != nil {
				return err
			}
			if !bytes.Equal(v, w) {
				out = append(out, fmt.Sprintf("row %d ('%s'), column '%s': %s / %s", x.Index, x.ID, c.Name, v, w))
			}
		}
		return nil
	})
	return out, err
}

// inStep compares the rows of two tables one by one, until there are enough
// differences, and adds one where a table has fewer rows than the other.
func inStep[T any](a, b *Reader, rowsA, rowsB iter.Seq2[T, error], out *[]string, compare func(n int, x, y T) error) error {
	nextA, stopA := iter.Pull2(rowsA)
	defer stopA()
	nextB, stopB := iter.Pull2(rowsB)
	defer stopB()
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
func diffColumns(a, b *Reader) []string {
	var out []string
	for i := range max(len(a.columns), len(b.columns)) {
		x, y := a.describe(i), b.describe(i)
		if x == y {
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
	if c.Class != "" {
		s += " (" + c.Class + ")"
	}
	return s
}

// DiffTools compares what the tools of two tables mean, whatever layouts they are
// stored in and whatever their rows are called: kind, name, description, schemas as
// JSON, ports, message port, files, server. It returns at most 20 differences.
func DiffTools(ctx context.Context, a, b *Reader) ([]string, error) {
	ca, err := a.Column("")
	if err != nil {
		return nil, err
	}
	cb, err := b.Column("")
	if err != nil {
		return nil, err
	}
	var out []string
	err = inStep(a, b, a.Tools(ctx, ca), b.Tools(ctx, cb), &out, func(n int, x, y ToolRow) error {
		if v, w := x.Tool.meaning(), y.Tool.meaning(); v != w {
			out = append(out, "row "+strconv.Itoa(n)+": "+v+" / "+w)
		}
		return nil
	})
	return out, err
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
