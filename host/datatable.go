package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store/pieces"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
	"github.com/tenonhq/tenon/workflow/runner"
)

// The bounds of the rows of a table that expressions see.
const (
	headRows  = 100
	headBytes = 64 << 10
)

// errTableFull says that a table exceeds its bound.
var errTableFull = errors.New("the table is too large")

// openTable opens a table at its start, wherever in stands.
func openTable(ctx context.Context, in *io.SectionReader) (*table.Reader, error) {
	return table.Open(ctx, "-", table.Options{Stdin: io.NewSectionReader(in, 0, in.Size()), Name: "the data"})
}

// openStored opens a table that the store has.
func (h *Host) openStored(ctx context.Context, t tenon.Table) (*table.Reader, error) {
	in, err := pieces.OpenTable(ctx, h.store, t)
	if err != nil {
		return nil, err
	}
	return openTable(ctx, in)
}

// takeTables checks tables that come from outside, in memory or in files. It returns their descriptions by port, and
// the tables by digest.
func (h *Host) takeTables(ctx context.Context, in map[string][]byte,
	files map[string]*io.SectionReader) (map[string]tenon.Table, map[string]runner.Given, []taken, error) {
	from := map[string]tableSource{}
	for name, data := range in {
		from[name] = inMemory(data)
	}
	for name, f := range files {
		if _, twice := from[name]; twice {
			return nil, nil, nil, tenon.Errorf(tenon.CodeInvalid, "there are two tables for input '%s'",
				tenon.Visible(name))
		}
		from[name] = tableSource{in: f}
	}
	tables, given, list := map[string]tenon.Table{}, map[string]runner.Given{}, []taken(nil)
	for _, name := range slices.Sorted(maps.Keys(from)) {
		t, err := h.take(ctx, "the table for input '"+tenon.Visible(name)+"'", from[name])
		if err != nil {
			return nil, nil, nil, err
		}
		t.Name = name
		tables[name], given[t.Digest] = t.Table, t.Given
		list = append(list, t)
	}
	return tables, given, list, nil
}

// summary describes a table and returns its first rows.
func summary(ctx context.Context, in *io.SectionReader, head int) (t tenon.Table, rows json.RawMessage, err error) {
	r, err := openTable(ctx, in)
	if err != nil {
		return t, nil, err
	}
	t, rows, err = r.Summary(ctx, head, headBytes)
	closed := r.Close()
	if err == nil {
		err = closed
	}
	t.Bytes = in.Size()
	return t, rows, err
}

// heads returns the first rows of the inputs of a workflow, for its expressions.
func (h *Host) heads(ctx context.Context, inputs map[string]tenon.Table,
	given map[string]runner.Given) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	for name, t := range inputs {
		in := given[t.Digest].In
		if in == nil {
			var err error
			if in, err = pieces.OpenTable(ctx, h.store, t); err != nil {
				return nil, err
			}
		}
		_, rows, err := summary(ctx, in, headRows)
		if err != nil {
			return nil, tenon.Errorf(tenon.ErrorCode(err), "the table for input '%s': %w", name, err)
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[name] = rows
	}
	return out, nil
}

// doTable makes the table of a step.
func (h *Host) doTable(ctx context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	c, err := tenon.CommandData[workflow.TableCommand](a.Command)
	if err != nil {
		return nil, err
	}
	p, err := h.flows.Stored(ctx, c.Workflow)
	if err != nil {
		return nil, err
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out io.Writer) error {
		o := table.WriteOptions{Stdout: out}
		switch {
		case c.CSV != "":
			data, err := p.Pack.File(c.CSV)
			if err != nil {
				return err
			}
			return inFile(c.CSV, table.WriteCSV(ctx, "-", data, c.Columns, o))
		case c.Arrow != "":
			data, err := p.Pack.File(c.Arrow)
			if err != nil {
				return err
			}
			r, err := openTable(ctx, pieces.Bytes(data))
			if err != nil {
				return inFile(c.Arrow, err)
			}
			_, err = table.Concat(ctx, "-", []*table.Reader{r}, o)
			return inFile(c.Arrow, errors.Join(err, r.Close()))
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(c.Rows, &rows); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "rows: the value is not a list of rows")
		}
		return table.WriteRows(ctx, "-", rows, c.Columns, o)
	})
}

func inFile(name string, err error) error {
	if err == nil {
		return nil
	}
	return tenon.Errorf(tenon.ErrorCode(err), "%s: %w", name, err)
}

// makeTable runs a function that makes a table, within the bounds of a table, and keeps the table. An error is the
// failure of the step.
func (h *Host) makeTable(ctx context.Context, a engine.Attempt, timeout time.Duration,
	run func(context.Context, io.Writer) error) ([]tenon.Event, error) {
	parent := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	start := time.Now()
	out, err := h.spoolTable(func(w io.Writer) error { return run(ctx, w) })
	defer func() { _ = out.Close() }() // a temporary file
	var t tenon.Table
	var rows json.RawMessage
	if err == nil {
		t, rows, err = summary(ctx, out.Section(), headRows)
	}
	switch {
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	case errors.Is(err, errTableFull):
		err = tenon.Errorf(tenon.CodeTooLarge, "%w; or filter or aggregate it", h.tooLarge("the table"))
	case err != nil && ctx.Err() != nil:
		err = tenon.Errorf(tenon.CodeTimeout, "it took longer than %s", timeout.Round(time.Millisecond))
	}
	if err != nil {
		return []tenon.Event{h.executor.Failed(a.Step, err, false, time.Since(start))}, nil
	}
	t.Name = a.Step
	if err = h.keep(parent, a.Row.ID, out, &t); err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult,
		Data: encode(agent.Outcome{Result: &tenon.Result{Structured: rows}, Outputs: []tenon.Table{t},
			Duration: time.Since(start)})}}, nil
}

// doSQL runs the query of a step.
func (h *Host) doSQL(ctx context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	c, err := tenon.CommandData[workflow.SQLCommand](a.Command)
	if err != nil {
		return nil, err
	}
	most, _ := h.tableLimit()
	q := table.Query{SQL: c.SQL, Bytes: math.MaxInt64, Temp: max(maxQueryTemp, 2*most)}
	if len(c.Params) > 0 {
		d := json.NewDecoder(bytes.NewReader(c.Params))
		d.UseNumber() // integers are exact
		if err := d.Decode(&q.Params); err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
		}
	}
	c.Timeout = cmp.Or(c.Timeout, queryTimeout)
	var open []*table.Reader
	defer func() {
		for _, r := range open {
			_ = r.Close() // it was only read
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(c.Tables)) {
		r, err := h.openStored(ctx, c.Tables[name])
		if code := tenon.ErrorCode(err); code == tenon.CodeStore || code == tenon.CodeCancelled {
			return nil, err
		}
		if err != nil {
			return []tenon.Event{h.executor.Failed(a.Step, tenon.Errorf(tenon.ErrorCode(err), "table '%s': %w", name,
				err), false, 0)}, nil
		}
		open = append(open, r)
		q.Tables = append(q.Tables, table.Input{Name: name, Reader: r})
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out io.Writer) error {
		_, err := table.Select(ctx, q, "-", table.WriteOptions{Stdout: out})
		return err
	})
}

// The bounds of a query of a workflow: its time if the step names none, and its temporary files.
const (
	queryTimeout = 5 * time.Minute
	maxQueryTemp = 1 << 30
)
