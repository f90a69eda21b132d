package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow/runner"
)

// queryTools is the tool with which a model reads the tables of its conversation. It is offered once the conversation
// has some.
var queryTools = []tenon.Tool{{Remote: "query_table", Annotations: harmless,
	Description: "Queries the tables of the data repository with one SQL query (SQLite's SELECT). The table " +
		"with id 0 is table_0, and so on. " +
		"Returns the first rows of the result; with keep the whole result becomes a table of the repository.",
	Input: json.RawMessage(`{"type":"object","properties":{` +
		`"sql":{"type":"string","description":"The query, such as ` +
		`SELECT city, sum(amount) AS total FROM table_0 GROUP BY city"},` +
		`"rows":{"type":"integer","minimum":1,"maximum":200,"description":"Rows to show; default 20"},` +
		`"keep":{"type":"boolean","description":"Keep the whole result as a new table and return its id"}},` +
		`"required":["sql"],"additionalProperties":false}`)}}

// The bounds of one call of the tool.
const (
	queryRows  = 20 // if the model names no number
	queryMost  = 200
	queryBytes = 24 << 10 // less than the default limit of a result
	queryTime  = 30 * time.Second
	queryTemp  = 2 << 30
)

// tableName matches the names of a conversation's tables in queries.
var tableName = lazyregexp.New(`(?i)\btable_([0-9]{1,6})\b`)

// doQuery executes a query of tables. Errors of the query are results for the model.
func (h *Host) doQuery(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	start := time.Now()
	c, err := s.Tool()
	if err != nil {
		return nil, err
	}
	var args struct {
		SQL  string
		Rows int64
		Keep bool
	}
	if err := readArguments(c.Arguments, &args); err != nil {
		return []tenon.Event{h.executor.Failed(s.Step, tenon.Errorf(tenon.CodeInvalid, "%w", err), false, 0)}, nil
	}
	unlimited := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, queryTime, fmt.Errorf("it may take %s", queryTime))
	defer cancel()
	most, _ := h.tableLimit()
	q := table.Query{SQL: args.SQL, Temp: max(queryTemp, 2*most), Bytes: math.MaxInt64, Shown: !args.Keep}
	args.Rows = min(cmp.Or(args.Rows, queryRows), queryMost)
	if !args.Keep {
		q.Rows = args.Rows
	}
	o := agent.Outcome{}
	t, rows, out, err := h.query(ctx, c.Data, q, int(args.Rows))
	defer func() { _ = out.Close() }() // a temporary file
	stopped := s.Stopped()
	switch {
	case err != nil && stopped != nil:
		return nil, stopped
	case tenon.ErrorCode(err) == tenon.CodeStore:
		return nil, err
	case errors.Is(err, errTableFull):
		o.Result = tenon.ErrorResult(h.tooLarge("the result").Error() + "; or select less, or aggregate")
	case err != nil:
		o.Result = tenon.ErrorResult(err.Error())
	default:
		o.Result = h.redactor.Result(tenon.VisibleResult(tellRows(t, rows)))
		if args.Keep {
			t.Name, t.Description = "query_result", tenon.Shorten(args.SQL, titleLen)
			if err = h.keep(unlimited, s.Row.ID, out, &t); err != nil {
				return nil, err
			}
			o.Outputs = []tenon.Table{t}
		}
	}
	o.Duration = time.Since(start)
	return []tenon.Event{{Step: s.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// query runs a query over the tables that it names. It returns the table of the result, and the first rows; More says
// that there are further rows.
func (h *Host) query(ctx context.Context, tables []tenon.Table, q table.Query,
	head int) (t tenon.Table, rows queried, out madeTable, err error) {
	defer func() {
		for _, in := range q.Tables {
			err = errors.Join(err, in.Reader.Close())
		}
	}()
	for _, m := range tableName().FindAllStringSubmatch(q.SQL, -1) {
		id, _ := strconv.Atoi(m[1]) // the pattern allows only digits
		name := "table_" + strconv.Itoa(id)
		if m[1] != strconv.Itoa(id) ||
			slices.ContainsFunc(q.Tables, func(in table.Input) bool { return in.Name == name }) {
			continue
		}
		if id >= len(tables) {
			continue // a string literal of the query may look like a name
		}
		r, err := h.openStored(ctx, tables[id])
		if err != nil {
			return t, rows, out, err
		}
		q.Tables = append(q.Tables, table.Input{Name: name, Reader: r})
	}
	var got table.Selected
	out, err = h.spoolTable(func(w io.Writer) (err error) {
		got, err = table.Select(ctx, q, "-", table.WriteOptions{Stdout: w})
		return err
	})
	if err != nil {
		if _, what, ok := strings.Cut(err.Error(), "no such table: "); ok {
			if m := tableName().FindStringSubmatchIndex(what); m != nil && m[0] == 0 {
				err = agent.NoData(what[m[2]:m[3]], len(tables))
			}
		}
		return t, rows, out, err
	}
	t, list, err := summary(ctx, out.Section(), head)
	if err != nil {
		return t, rows, out, err
	}
	rows.Columns, rows.Rows, rows.More = t.Columns, list, got.More || got.Rows > int64(head)
	return t, rows, out, nil
}

// queried is the result of a query for the model.
type queried struct {
	Columns []tenon.TableColumn `json:"columns"`
	Rows    json.RawMessage     `json:"rows"`
	More    bool                `json:"more"` // there are more rows than these
}

// tellRows makes the tool result, with as many rows as it may hold.
func tellRows(t tenon.Table, q queried) *tenon.Result {
	var list []json.RawMessage
	_ = json.Unmarshal(q.Rows, &list) // written by query
	size, n := 0, 0
	for ; n < len(list) && size+len(list[n]) < queryBytes; n++ {
		size += len(list[n]) + 1
	}
	if n < len(list) {
		list, q.More = list[:n], true
	}
	if list == nil {
		list = []json.RawMessage{}
	}
	var b bytes.Buffer
	for _, row := range list {
		b.Write(row)
		b.WriteByte('\n')
	}
	switch {
	case len(list) == 0 && !q.More:
		b.WriteString("[no rows]")
	case q.More && t.Rows > int64(len(list)):
		fmt.Fprintf(&b, "[the first %d of %d rows]", len(list), t.Rows)
	case q.More:
		fmt.Fprintf(&b, "[the first %s; there are more]", counted(len(list), "row"))
	case len(list) == 1:
		b.WriteString("[1 row]")
	default:
		fmt.Fprintf(&b, "[%d rows]", len(list))
	}
	q.Rows = encode(list)
	return &tenon.Result{Content: []tenon.Content{tenon.Text(b.String())}, Structured: encode(q)}
}

// dataInputs opens the tables with which a conversation of an agent begins. The tables of the question follow them.
// Done closes the files.
func (h *Host) dataInputs(a agent.Config, data []tableSource) (list []tableSource, done func(), err error) {
	var open []io.Closer
	done = func() {
		for _, f := range open {
			_ = f.Close() // it was only read
		}
	}
	for i, file := range a.DataInputs {
		if h.config.Knows(file) { // the trust of the project is about its bytes
			b, err := h.config.ReadFile(file, maxTable)
			if err != nil {
				done()
				return nil, nil, tenon.Errorf(tenon.CodeConfig, "data_inputs[%d]: %w", i, err)
			}
			list = append(list, inMemory(b))
			continue
		}
		f, in, err := openFile(file)
		if err != nil {
			done()
			return nil, nil, tenon.Errorf(tenon.CodeConfig, "data_inputs[%d]: %w", i, err)
		}
		open, list = append(open, f), append(list, tableSource{in: in})
	}
	return append(list, data...), done, nil
}

// openFile opens a regular file of a table.
func openFile(file string) (*os.File, *io.SectionReader, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = tenon.Errorf(tenon.CodeInvalid, "%s is not a file", file)
	}
	if err != nil {
		_ = f.Close() // it was only opened
		return nil, nil, err
	}
	return f, io.NewSectionReader(f, 0, st.Size()), nil
}

// giveData puts the tables of a question into the spec and its blobs. It also sets the text about tables for the model.
// Without tables, and without a tool that takes or returns tables, there is no text.
func (h *Host) giveData(ctx context.Context, q Question, a agent.Config, s *catalog.Snapshot, spec *agent.Spec,
	begin *engine.Spec) error {
	var list []taken
	for i, from := range q.tables {
		what := fmt.Sprintf("table %d of the question", i-q.own+1)
		if i < q.own {
			what = fmt.Sprintf("data_inputs[%d] of the agent, %s", i, a.DataInputs[i])
		}
		t, err := h.take(ctx, what, from)
		if err != nil {
			return err
		}
		n := strconv.Itoa(i + 1)
		t.Name, t.Description = "input_table_"+n, "Input table "+n
		spec.Data = append(spec.Data, t.Table)
		if t.Data != nil && !slices.ContainsFunc(list, func(o taken) bool { return o.Digest == t.Digest }) {
			begin.Blobs = append(begin.Blobs, t.Data)
		}
		list = append(list, t)
	}
	begin.Late = h.late(list)
	if len(spec.Data) > 0 || h.hasPorts(s) {
		spec.DataPrompt = cmp.Or(strings.TrimSpace(a.DataMessagePrefix), agent.DefaultDataPrompt)
	}
	return nil
}

// hasPorts reports whether a snapshot has a tool that takes or returns tables.
func (h *Host) hasPorts(s *catalog.Snapshot) bool {
	if s == nil || len(h.flows.tools) == 0 { // most hosts have no workflows, and some have many tools
		return false
	}
	return slices.ContainsFunc(s.Tools(), func(t *tenon.Tool) bool {
		f := h.callee(t)
		return f != nil && len(f.Inputs)+len(f.Outputs) > 0
	})
}

// checkData checks a model's call of a workflow against the workflow's ports and the tables of the conversation. The
// messages have the wording of the original implementation.
func checkData(f *runner.Flow, c *agent.DecideCommand) error {
	if len(f.Inputs) == 0 {
		return nil
	}
	var args struct {
		Configuration map[string]json.RawMessage `json:"configuration"`
		Inputs        map[string]json.RawMessage `json:"data_inputs"`
	}
	if json.Unmarshal(c.Call.Arguments, &args) != nil {
		return nil // the check against the schema reports other types
	}
	var required struct{ Required []string }
	_ = json.Unmarshal(f.Schema(), &required) // made by Flow.CallSchema
	var missing []string
	for _, name := range required.Required {
		if _, ok := args.Configuration[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "Missing configuration parameters: %s", strings.Join(missing, ", "))
	}
	ports := make([]string, len(f.Inputs))
	for i, in := range f.Inputs {
		ports[i] = in.Name
	}
	return agent.CheckData(ports, args.Inputs, c.Data)
}

// tabular makes a table of a result that is too large to show and is a list of rows. A list of rows is a list of
// objects, or an object with exactly one such list.
func (h *Host) tabular(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, r *tenon.Result) ([]tenon.Table,
	error) {
	rows := rowsOf(r.Structured)
	if len(rows) < 2 || r.IsError {
		return nil, nil
	}
	out, err := h.spoolTable(func(w io.Writer) error {
		return table.WriteRows(ctx, "-", rows, nil, table.WriteOptions{Stdout: w})
	})
	if err != nil {
		return nil, nil // not a list of rows
	}
	defer func() { _ = out.Close() }() // a temporary file
	t, _, err := summary(ctx, out.Section(), 0)
	if err != nil {
		return nil, err
	}
	t.Name, t.Description = c.Name, "Result of "+c.Name
	if err = h.keep(ctx, a.Row.ID, out, &t); err != nil {
		return nil, err
	}
	return []tenon.Table{t}, nil
}

func rowsOf(raw json.RawMessage) []json.RawMessage {
	var rows []json.RawMessage
	var whole map[string]json.RawMessage
	if json.Unmarshal(raw, &rows) != nil && json.Unmarshal(raw, &whole) == nil {
		lists := 0
		for _, v := range whole {
			var list []json.RawMessage
			if json.Unmarshal(v, &list) == nil && list != nil {
				rows, lists = list, lists+1
			}
		}
		if lists != 1 {
			return nil
		}
	}
	for _, r := range rows {
		if len(r) == 0 || r[0] != '{' {
			return nil
		}
	}
	return rows
}
