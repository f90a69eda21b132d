package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store/pieces"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/view"
)

// RunTable is a table of a run.
type RunTable struct {
	tenon.Table
	// Role is input, output, or step for the table of an intermediate step.
	Role string `json:"role"`
	Step string `json:"step,omitempty"` // the step that made it
}

// TablePage is a part of a table's rows, for display.
type TablePage struct {
	Columns []tenon.TableColumn `json:"columns"`
	Rows    []TableRow          `json:"rows"`
	Skipped int64               `json:"skipped"`
	Total   int64               `json:"total"` // rows of the table; -1: not counted
	More    bool                `json:"more"`
}

// TableRow is a row as texts; nil is a missing cell. A text of more than 1,000 bytes is cut and ends with an ellipsis.
type TableRow struct {
	Index int64     `json:"index"`
	ID    string    `json:"id"`
	Cells []*string `json:"cells"`
	// Value is the whole row as JSON, if PageOptions.Whole is set.
	Value json.RawMessage `json:"value,omitempty"`
}

// maxCellShown bounds a cell in a page, in bytes.
const maxCellShown = 1000

// redactedCell replaces values that a redact rule hides.
const redactedCell = "[redacted]"

// PageOptions select the rows of a page.
type PageOptions struct {
	Skip, Limit int64
	Whole       bool // include the value of each row
	Count       bool // include the number of all rows, which reads the whole table
}

func (h runDataHandle) Tables(ctx context.Context) ([]RunTable, error) {
	events, err := h.host.store.Events(ctx, h.id, 0, 0)
	if err != nil {
		return nil, err
	}
	var list []RunTable
	for _, e := range events {
		switch e.Kind {
		case tenon.EventRun:
			_, own, err := view.Spec[struct {
				Inputs map[string]tenon.Table `json:"inputs"`
			}](e)
			if err != nil {
				continue // the run takes no tables by name
			}
			for _, name := range slices.Sorted(maps.Keys(own.Inputs)) {
				t := own.Inputs[name]
				t.Name = name
				list = append(list, RunTable{Table: t, Role: "input"})
			}
		case agent.EventResult:
			for _, t := range view.As[agent.Outcome](e).Outputs {
				list = append(list, RunTable{Table: t, Role: "step", Step: e.Step})
			}
		case tenon.EventDone:
			_, sum, err := view.Ended(e)
			if err != nil {
				continue
			}
			for _, t := range sum.Outputs {
				list = append(list, RunTable{Table: t, Role: "output"})
			}
		}
	}
	return list, nil
}

func (h runDataHandle) OpenTable(ctx context.Context, digest string) (*TableReader, error) {
	t, err := h.host.runTable(ctx, h.id, digest)
	if err != nil {
		return nil, err
	}
	in, err := pieces.OpenTable(ctx, h.host.store, t)
	if err != nil {
		return nil, err
	}
	return NewTableReader(in, nil), nil
}

func (h *Host) runTable(ctx context.Context, run, digest string) (tenon.Table, error) {
	list, err := h.Runs().Open(run).Data().Tables(ctx)
	if err != nil {
		return tenon.Table{}, err
	}
	at := slices.IndexFunc(list, func(t RunTable) bool { return t.Digest == digest })
	if at < 0 {
		return tenon.Table{}, tenon.Errorf(tenon.CodeNotFound, "run %s has no table '%s'", run, tenon.Visible(digest))
	}
	return list[at].Table, nil
}

func (h runDataHandle) Page(ctx context.Context, digest string, o PageOptions) (TablePage, error) {
	t, err := h.host.runTable(ctx, h.id, digest)
	if err != nil {
		return TablePage{}, err
	}
	r, err := h.host.openStored(ctx, t)
	if err != nil {
		return TablePage{}, err
	}
	o.Count = false // the number is known
	p, err := h.host.pageOf(ctx, r, o)
	p.Total = t.Rows
	return p, err
}

func (h tablesHandle) Page(ctx context.Context, id string, o PageOptions) (TablePage, error) {
	path, err := h.host.tablePath(id)
	if err != nil {
		return TablePage{}, err
	}
	return h.host.filePage(ctx, path, o)
}

// filePage reads rows of a table in a file: an Arrow file, an Arrow stream or a bundle.
func (h *Host) filePage(ctx context.Context, path string, o PageOptions) (TablePage, error) {
	legacy := table.LegacyAllow // displaying a table is harmless
	if h.config.Tables.WithDefaults().Legacy.Read == table.LegacyDeny {
		legacy = table.LegacyDeny
	}
	r, err := table.Open(ctx, path, table.Options{Legacy: legacy})
	if err != nil {
		return TablePage{}, err
	}
	return h.pageOf(ctx, r, o)
}

// pageOf reads rows and closes the reader.
func (h *Host) pageOf(ctx context.Context, r *table.Reader, o PageOptions) (p TablePage, err error) {
	defer func() {
		closed := r.Close()
		if err == nil {
			err = closed
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
			p.More = true
			if !o.Count {
				return p, nil
			}
			p.Total, _, err = r.Count(ctx) // including the rows read so far
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

func (h *Host) rowOf(columns []table.Shown, texts func(table.Cells) ([]*string, error), c table.Cells,
	whole bool) (TableRow, error) {
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
