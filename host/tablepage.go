package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// RunTable is a table of a run.
type RunTable struct {
	tenon.Table
	// Role is input, output, or step for what a step made on the way.
	Role string `json:"role"`
	Step string `json:"step,omitempty"` // that made it
}

// TablePage is some rows of a table, to be shown.
type TablePage struct {
	Columns []tenon.TableColumn `json:"columns"`
	Rows    []TableRow          `json:"rows"`
	Skipped int64               `json:"skipped"`
	Total   int64               `json:"total"` // rows of the table; -1: it was not counted
	More    bool                `json:"more"`
}

// TableRow is a row as texts, nil where a cell is missing. What is longer than
// 1,000 characters is cut and ends with an ellipsis.
type TableRow struct {
	Index int64     `json:"index"`
	ID    string    `json:"id"`
	Cells []*string `json:"cells"`
	// Value is the whole row as JSON, where one was asked for.
	Value json.RawMessage `json:"value,omitempty"`
}

// maxCellShown bounds a cell in a page, in bytes.
const maxCellShown = 1000

// redactedCell stands for what a redact rule hides.
const redactedCell = "[redacted]"

// PageOptions say which rows.
type PageOptions struct {
	Skip, Limit int64
	Whole       bool // with the value of each row
	Count       bool // with the number of all rows, for which all of it is read
}

// RunTables lists the tables of a run: what it got, what its steps made, what it gave.
func (h *Host) RunTables(ctx context.Context, run string) ([]RunTable, error) {
	events, err := h.store.Events(ctx, run, 0, 0)
	if err != nil {
		return nil, err
	}
	var list []RunTable
	for _, e := range events {
		switch e.Kind {
		case tenon.EventRun:
			var spec engine.Spec
			var own struct {
				Inputs map[string]tenon.Table `json:"inputs"`
			}
			if json.Unmarshal(e.Data, &spec) != nil || json.Unmarshal(spec.Data, &own) != nil {
				continue // a run that takes no tables by name
			}
			for _, name := range slices.Sorted(maps.Keys(own.Inputs)) {
				t := own.Inputs[name]
				t.Name = name
				list = append(list, RunTable{Table: t, Role: "input"})
			}
		case agent.EventResult:
			var o struct {
				Outputs []tenon.Table `json:"outputs"`
			}
			if json.Unmarshal(e.Data, &o) != nil {
				continue
			}
			for _, t := range o.Outputs {
				list = append(list, RunTable{Table: t, Role: "step", Step: e.Step})
			}
		case tenon.EventDone:
			var done tenon.DoneData
			var sum workflow.Summary
			if json.Unmarshal(e.Data, &done) != nil || json.Unmarshal(done.Data, &sum) != nil {
				continue
			}
			for _, t := range sum.Outputs {
				list = append(list, RunTable{Table: t, Role: "output"})
			}
		}
	}
	return list, nil
}

// RunTableBytes returns a table of a run, an Arrow file or stream. Errors: not_found.
func (h *Host) RunTableBytes(ctx context.Context, run, digest string) ([]byte, error) {
	data, _, err := h.runTable(ctx, run, digest)
	return data, err
}

func (h *Host) runTable(ctx context.Context, run, digest string) ([]byte, tenon.Table, error) {
	list, err := h.RunTables(ctx, run)
	if err != nil {
		return nil, tenon.Table{}, err
	}
	at := slices.IndexFunc(list, func(t RunTable) bool { return t.Digest == digest })
	if at < 0 {
		return nil, tenon.Table{}, tenon.Errorf(tenon.CodeNotFound, "run %s has no table '%s'", run, tenon.Visible(digest))
	}
	data, err := h.store.Blob(ctx, digest)
	return data, list[at].Table, err
}

// RunTablePage reads rows of a table of a run. Errors: not_found.
func (h *Host) RunTablePage(ctx context.Context, run, digest string, o PageOptions) (TablePage, error) {
	data, t, err := h.runTable(ctx, run, digest)
	if err != nil {
		return TablePage{}, err
	}
	r, err := openTable(data)
	if err != nil {
		return TablePage{}, err
	}
	o.Count = false // it is known
	p, err := h.pageOf(ctx, r, o)
	p.Total = t.Rows
	return p, err
}

// FileTablePage reads rows of a table in a file, an Arrow file or stream or a bundle.
func (h *Host) FileTablePage(ctx context.Context, path string, o PageOptions) (TablePage, error) {
	legacy := table.LegacyAllow // what is shown does no harm
	if h.config.Tables.WithDefaults().Legacy.Read == table.LegacyDeny {
		legacy = table.LegacyDeny
	}
	r, err := table.Open(path, table.Options{Legacy: legacy})
	if err != nil {
		return TablePage{}, err
	}
	return h.pageOf(ctx, r, o)
}

// pageOf reads rows and closes the reader.
func (h *Host) pageOf(ctx context.Context, r *table.Reader, o PageOptions) (p TablePage, err error) {
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	p = TablePage{Columns: []tenon.TableColumn{}, Rows: []TableRow{}, Skipped: o.Skip, Total: -1}
	columns, texts := r.View()
	for _, c := range columns {
		p.Columns = append(p.Columns, c.TableColumn)
	}
	n := int64(0)
	for row, err := range r.Rows(ctx) {
		n = row.Index + 1
		switch {
		case err != nil:
			return p, err
		case row.Index < o.Skip:
			continue
		case row.Index >= o.Skip+o.Limit:
			if p.More = true; !o.Count {
				return p, nil
			}
			p.Total, _, err = r.Count(ctx) // with what has been read
			return p, err
		}
		shown, err := h.rowOf(columns, texts, row, o.Whole)
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, shown)
	}
	p.Total = n
	return p, nil
}

func (h *Host) rowOf(columns []table.Shown, texts func(table.Cells) ([]*string, error), c table.Cells, whole bool) (TableRow, error) {
	row := TableRow{Index: c.Index, ID: c.ID}
	var err error
	if row.Cells, err = texts(c); err != nil {
		return row, err
	}
	for i, text := range row.Cells {
		switch {
		case policy.IsNamed(columns[i].Of, h.redacts):
			hidden := redactedCell
			row.Cells[i] = &hidden
		case text != nil && len(*text) > maxCellShown:
			n := maxCellShown
			for n > 0 && !utf8.RuneStart((*text)[n]) {
				n--
			}
			short := (*text)[:n] + "…"
			row.Cells[i] = &short
		}
	}
	if !whole {
		return row, nil
	}
	v, err := c.JSON(false)
	row.Value = policy.Mask(v, h.redacts)
	return row, err
}
