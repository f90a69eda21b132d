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
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// The bounds of a table of a workflow: the size of its Arrow data, and the rows of it that expressions see.
const (
	maxTable  = 64 << 20
	headRows  = 100
	headBytes = 64 << 10
)

// errTableFull says that a table exceeds its bound.
var errTableFull = errors.New("the table is too large")

// tableBuffer collects a table as it is written.
type tableBuffer struct {
	bytes.Buffer
	full bool // more was written than it holds
}

// Write implements io.Writer.
func (b *tableBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTable {
		b.full = true
		return 0, errTableFull
	}
	return b.Buffer.Write(p)
}

// openTable opens a table in memory.
func openTable(ctx context.Context, data []byte) (*table.Reader, error) {
	return table.Open(ctx, "-", table.Options{Stdin: bytes.NewReader(data), Name: "the data"})
}

// takeTables checks tables that come from outside. It returns their descriptions by port, and their bytes by digest.
func (h *Host) takeTables(ctx context.Context, in map[string][]byte) (map[string]tenon.Table, map[string][]byte,
	error) {
	tables, blobs := map[string]tenon.Table{}, map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		data := in[name]
		if len(data) > maxTable {
			return nil, nil, tenon.Errorf(tenon.CodeTooLarge, "the table for input '%s' has more than %d MiB",
				tenon.Visible(name), maxTable>>20)
		}
		t, _, err := summary(ctx, data, 0)
		if err != nil {
			return nil, nil, tenon.Errorf(tenon.ErrorCode(err), "the table for input '%s': %w", tenon.Visible(name),
				err)
		}
		t.Name, t.Digest = name, store.Digest(data)
		tables[name], blobs[t.Digest] = t, data
	}
	return tables, blobs, nil
}

// summary describes a table and returns its first rows.
func summary(ctx context.Context, data []byte, head int) (t tenon.Table, rows json.RawMessage, err error) {
	r, err := openTable(ctx, data)
	if err != nil {
		return t, nil, err
	}
	t, rows, err = r.Summary(ctx, head, headBytes)
	closed := r.Close()
	if err == nil {
		err = closed
	}
	t.Bytes = int64(len(data))
	return t, rows, err
}

// heads returns the first rows of the inputs of a workflow, for its expressions.
func (h *Host) heads(ctx context.Context, inputs map[string]tenon.Table,
	blobs map[string][]byte) (map[string]json.RawMessage, error) {
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
func (h *Host) doTable(ctx context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	c, err := tenon.CommandData[workflow.TableCommand](a.Command)
	if err != nil {
		return nil, err
	}
	p, err := h.flows.Stored(ctx, c.Workflow)
	if err != nil {
		return nil, err
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out *tableBuffer) error {
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
			r, err := openTable(ctx, data)
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
	run func(context.Context, *tableBuffer) error) ([]tenon.Event, error) {
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
		return []tenon.Event{h.executor.Failed(a.Step, err, false, time.Since(start))}, nil
	}
	t.Name = a.Step
	if t.Digest, err = h.store.PutBlob(ctx, a.Row.ID, out.Bytes()); err != nil {
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
		r, err := openTable(ctx, data)
		if err != nil {
			return []tenon.Event{h.executor.Failed(a.Step, tenon.Errorf(tenon.ErrorCode(err), "table '%s': %w", name,
				err), false, 0)}, nil
		}
		open = append(open, r)
		q.Tables = append(q.Tables, table.Input{Name: name, Reader: r})
	}
	return h.makeTable(ctx, a, c.Timeout, func(ctx context.Context, out *tableBuffer) error {
		_, err := table.Select(ctx, q, "-", table.WriteOptions{Stdout: out})
		return err
	})
}

// The bounds of a query of a workflow: its time if the step names none, and its temporary files.
const (
	queryTimeout = 5 * time.Minute
	maxQueryTemp = 1 << 30
)
