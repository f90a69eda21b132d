package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// The bounds of a table of a workflow: its Arrow bytes, and of its rows those that
// expressions see.
const (
	maxTable  = 64 << 20
	headRows  = 100
	headBytes = 64 << 10
)

// errTableFull says that a table is over its bound.
var errTableFull = errors.New("the table is too large")

// tableBuffer takes a table as it is written.
type tableBuffer struct {
	bytes.Buffer
	full bool // there was more than it holds
}

// Write implements io.Writer.
func (b *tableBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTable {
		b.full = true
		return 0, errTableFull
	}
	return b.Buffer.Write(p)
}

// openTable opens a table that is in memory.
func openTable(data []byte) (*table.Reader, error) {
	return table.Open("-", table.Options{Stdin: bytes.NewReader(data), Name: "the data"})
}

// takeTables looks at tables that come from outside: what is told of them, by port, and
// their bytes by digest.
func (h *Host) takeTables(ctx context.Context, in map[string][]byte) (map[string]tenon.Table, map[string][]byte, error) {
	tables, blobs := map[string]tenon.Table{}, map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		data := in[name]
		if len(data) > maxTable {
			return nil, nil, tenon.Errorf(tenon.CodeTooLarge, "the table for input '%s' has more than %d MiB", tenon.Visible(name), maxTable>>20)
		}
		t, _, err := summary(ctx, data, 0)
		if err != nil {
			return nil, nil, tenon.Errorf(tenon.ErrorCode(err), "the table for input '%s': %w", tenon.Visible(name), err)
		}
		t.Name, t.Digest = name, digestOf(data)
		tables[name], blobs[t.Digest] = t, data
	}
	return tables, blobs, nil
}

// summary says what a table holds, with its first rows.
func summary(ctx context.Context, data []byte, head int) (t tenon.Table, rows json.RawMessage, err error) {
	r, err := openTable(data)
	if err != nil {
		return t, nil, err
	}
	t, rows, err = r.Summary(ctx, head, headBytes)
	if e := r.Close(); err == nil {
		err = e
	}
	t.Bytes = int64(len(data))
	return t, rows, err
}

// heads are the first rows of the inputs of a workflow, for its expressions.
func (h *Host) heads(ctx context.Context, inputs map[string]tenon.Table, blobs map[string][]byte) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	for name, t := range inputs {
		data := blobs[t.Digest]
		if data == nil {
			var err error
			if data, err = h.store.Blob(ctx, t.Digest); err != nil {
				return nil, err
			}
		}
		_, rows, err := summary(ctx, data, headRows)
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
func (h *Host) doTable(ctx context.Context, a engine.Attempt) ([]tenon.Event, error) {
	var c workflow.TableCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	p, err := h.packOf(ctx, c.Workflow)
	if err != nil {
		return nil, err
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out *tableBuffer) error {
		o := table.WriteOptions{Stdout: out}
		switch {
		case c.CSV != "":
			return inFile(c.CSV, table.WriteCSV(ctx, "-", p.pack.File(c.CSV), c.Columns, o))
		case c.Arrow != "":
			r, err := openTable(p.pack.File(c.Arrow))
			if err != nil {
				return inFile(c.Arrow, err)
			}
			_, err = table.Concat(ctx, "-", []*table.Reader{r}, o)
			return inFile(c.Arrow, errors.Join(err, r.Close()))
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(c.Rows, &rows); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "rows: it is no list of rows")
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

// makeTable runs what makes a table within its bounds and keeps it. What goes wrong
// with it is the step's failure.
func (h *Host) makeTable(ctx context.Context, a engine.Attempt, timeout time.Duration, run func(context.Context, *tableBuffer) error) ([]tenon.Event, error) {
	parent := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	start := time.Now()
	var out tableBuffer
	err := run(ctx, &out)
	var t tenon.Table
	var rows json.RawMessage
	if err == nil {
		t, rows, err = summary(ctx, out.Bytes(), headRows)
	}
	switch {
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	case errors.Is(err, errTableFull):
		err = tenon.Errorf(tenon.CodeTooLarge, "the table has more than %d MiB; filter or aggregate it", maxTable>>20)
	case err != nil && ctx.Err() != nil:
		err = tenon.Errorf(tenon.CodeTimeout, "it took longer than %s", timeout.Round(time.Millisecond))
	}
	if err != nil {
		return []tenon.Event{h.failed(a.Step, err, false, time.Since(start))}, nil
	}
	t.Name = a.Step
	if t.Digest, err = h.store.PutBlob(ctx, a.Row.ID, out.Bytes()); err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(agent.Outcome{Result: &tenon.Result{Structured: rows}, Outputs: []tenon.Table{t}, Duration: time.Since(start)})}}, nil
}

// doSQL runs the query of a step.
func (h *Host) doSQL(ctx context.Context, a engine.Attempt) ([]tenon.Event, error) {
	var c workflow.SQLCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	q := table.Query{SQL: c.SQL, Bytes: maxTable, Temp: maxQueryTemp}
	if len(c.Params) > 0 {
		d := json.NewDecoder(bytes.NewReader(c.Params))
		d.UseNumber() // integers are exact
		if err := d.Decode(&q.Params); err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
		}
	}
	if c.Timeout == 0 {
		c.Timeout = queryTimeout
	}
	var open []*table.Reader
	defer func() {
		for _, r := range open {
			_ = r.Close() // it is in memory
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(c.Tables)) {
		data, err := h.store.Blob(ctx, c.Tables[name].Digest)
		if err != nil {
			return nil, err
		}
		r, err := openTable(data)
		if err != nil {
			return []tenon.Event{h.failed(a.Step, tenon.Errorf(tenon.ErrorCode(err), "table '%s': %w", name, err), false, 0)}, nil
		}
		open = append(open, r)
		q.Tables = append(q.Tables, table.Input{Name: name, Reader: r})
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out *tableBuffer) error {
		_, err := table.Select(ctx, q, "-", table.WriteOptions{Stdout: out})
		return err
	})
}

// The bounds of a query of a workflow: its time where the step says none, and its
// temporary files.
const (
	queryTimeout = 5 * time.Minute
	maxQueryTemp = 1 << 30
)
