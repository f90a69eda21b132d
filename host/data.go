package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/table"
)

// The tool with which a model looks into the tables of its conversation. It is offered
// once there are some.
const (
	dataServer = catalog.DataServer
	queryTool  = "query_table"
)

// The bounds of what one call of it gives.
const (
	queryRows  = 20 // where the model does not say
	queryMost  = 200
	queryBytes = 24 << 10 // below what a result may hold by default
	queryTime  = 30 * time.Second
	queryTemp  = 2 << 30
)

// dataTools is the toolset of the tool. Its calls need the conversation, so that doTool
// makes them.
type dataTools []tenon.Tool

func newDataTools() dataTools {
	yes := true
	return dataTools{{Remote: queryTool, Annotations: tenon.Annotations{ReadOnly: &yes, Idempotent: &yes},
		Description: "Looks into the tables of the data repository with one SQL query (SQLite's SELECT). The table with id 0 is table_0, and so on. " +
			"Gives the first rows of the result; with keep the whole result becomes a table of the repository.",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"sql":{"type":"string","description":"The query, such as SELECT city, sum(amount) AS total FROM table_0 GROUP BY city"},` +
			`"rows":{"type":"integer","minimum":1,"maximum":200,"description":"Rows to show; default 20"},` +
			`"keep":{"type":"boolean","description":"Keep the whole result as a new table and tell its id"}},` +
			`"required":["sql"],"additionalProperties":false}`)}}
}

// Tools implements [tenon.Toolset].
func (t dataTools) Tools(context.Context) ([]tenon.Tool, error) { return t, nil }

// Call implements [tenon.Toolset].
func (dataTools) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return nil, tenon.Errorf(tenon.CodeInternal, "tool '%s' was called as if it were a tool of a server", c.Tool)
}

// tableName is how queries name the tables of a conversation.
var tableName = regexp.MustCompile(`(?i)\btable_([0-9]{1,6})\b`)

// doQuery looks into tables. What is wrong with the query is told to the model.
func (h *Host) doQuery(ctx, parent context.Context, a engine.Attempt, c *agent.ToolCommand) ([]tenon.Event, error) {
	start := time.Now()
	var args struct {
		SQL  string
		Rows int64
		Keep bool
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return []tenon.Event{h.failed(a.Step, tenon.Errorf(tenon.CodeInvalid, "the arguments cannot be read: %w", err), false, 0)}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queryTime, fmt.Errorf("it may take %s", queryTime))
	defer cancel()
	q := table.Query{SQL: args.SQL, Temp: queryTemp, Bytes: maxTable, Shown: !args.Keep}
	if args.Rows = min(cmp.Or(args.Rows, queryRows), queryMost); !args.Keep {
		q.Rows = args.Rows
	}
	var out tableBuffer
	o := agent.Outcome{}
	t, rows, err := h.query(ctx, c.Data, q, &out, int(args.Rows))
	switch {
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	case tenon.ErrorCode(err) == tenon.CodeStore:
		return nil, err
	case errors.Is(err, errTableFull):
		o.Result = tenon.ErrorResult(fmt.Sprintf("the result has more than %d MiB; select less, or aggregate", maxTable>>20))
	case err != nil:
		o.Result = tenon.ErrorResult(err.Error())
	default:
		o.Result = h.redacted(shown(tellRows(t, rows)))
		if args.Keep {
			t.Name, t.Description = "query_result", shorten(args.SQL, titleLen)
			if t.Digest, err = h.store.PutBlob(parent, a.Row.ID, out.Bytes()); err != nil {
				return nil, err
			}
			o.Outputs = []tenon.Table{t}
		}
	}
	o.Duration = time.Since(start)
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// query runs a query over those tables that it names, and returns what it gave with its
// first rows. Rows tell with More that there were others.
func (h *Host) query(ctx context.Context, tables []tenon.Table, q table.Query, out *tableBuffer, head int) (t tenon.Table, rows queried, err error) {
	defer func() {
		for _, in := range q.Tables {
			err = errors.Join(err, in.Reader.Close())
		}
	}()
	for _, m := range tableName.FindAllStringSubmatch(q.SQL, -1) {
		id, _ := strconv.Atoi(m[1]) // it has digits alone
		name := "table_" + strconv.Itoa(id)
		if m[1] != strconv.Itoa(id) || slices.ContainsFunc(q.Tables, func(in table.Input) bool { return in.Name == name }) {
			continue
		}
		if id >= len(tables) {
			continue // a text of the query may be called so, too
		}
		data, err := h.store.Blob(ctx, tables[id].Digest)
		if err != nil {
			return t, rows, err
		}
		r, err := openTable(data)
		if err != nil {
			return t, rows, err
		}
		q.Tables = append(q.Tables, table.Input{Name: name, Reader: r})
	}
	got, err := table.Select(ctx, q, "-", table.WriteOptions{Stdout: out})
	if err != nil {
		if out.full {
			err = errTableFull
		}
		if _, what, ok := strings.Cut(err.Error(), "no such table: "); ok {
			if m := tableName.FindStringSubmatchIndex(what); m != nil && m[0] == 0 {
				err = agent.NoData(what[m[2]:m[3]], len(tables))
			}
		}
		return t, rows, err
	}
	t, list, err := summary(ctx, out.Bytes(), head)
	if err != nil {
		return t, rows, err
	}
	rows.Columns, rows.Rows, rows.More = t.Columns, list, got.More || got.Rows > int64(head)
	return t, rows, nil
}

// queried is what a query gives to the model.
type queried struct {
	Columns []tenon.TableColumn `json:"columns"`
	Rows    json.RawMessage     `json:"rows"`
	More    bool                `json:"more"` // there are more rows than these
}

// tellRows makes the result: as many of the rows as it may hold.
func tellRows(t tenon.Table, q queried) *tenon.Result {
	var list []json.RawMessage
	_ = json.Unmarshal(q.Rows, &list) // ours
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
		fmt.Fprintf(&b, "[the first %d rows; there are more]", len(list))
	case len(list) == 1:
		b.WriteString("[1 row]")
	default:
		fmt.Fprintf(&b, "[%d rows]", len(list))
	}
	q.Rows = encode(list)
	return &tenon.Result{Content: []tenon.Content{tenon.Text(b.String())}, Structured: encode(q)}
}

// dataInputs reads the tables with which a conversation of an agent begins. They stand before
// those of the question.
func dataInputs(a agent.Config, data [][]byte) ([][]byte, error) {
	var list [][]byte
	for i, file := range a.DataInputs {
		b, err := readBounded(file, maxTable)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "data_inputs[%d]: %w", i, err)
		}
		list = append(list, b)
	}
	return append(list, data...), nil
}

// readBounded reads a file of at most so many bytes.
func readBounded(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && int64(len(b)) > most {
		err = tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d MiB", file, most>>20)
	}
	return b, err
}

// giveData puts the tables of a question into the spec and its blobs beside it, and says
// what the model is told of tables: nothing where there are none and no tool has to do
// with them.
func (h *Host) giveData(ctx context.Context, q Question, a agent.Config, s *catalog.Snapshot, spec *agent.Spec, begin *engine.Spec) error {
	for i, data := range q.Data {
		what := fmt.Sprintf("table %d of the question", i-q.own+1)
		if i < q.own {
			what = fmt.Sprintf("data_inputs[%d] of the agent, %s", i, a.DataInputs[i])
		}
		if len(data) > maxTable {
			return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d MiB", what, maxTable>>20)
		}
		t, _, err := summary(ctx, data, 0)
		if err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "%s: %w", what, err)
		}
		n := strconv.Itoa(i + 1)
		t.Name, t.Description, t.Digest = "input_table_"+n, "Input table "+n, digestOf(data)
		spec.Data = append(spec.Data, t)
		if !slices.ContainsFunc(begin.Blobs, func(b []byte) bool { return digestOf(b) == t.Digest }) {
			begin.Blobs = append(begin.Blobs, data)
		}
	}
	if len(spec.Data) > 0 || h.hasPorts(s) {
		spec.DataPrompt = cmp.Or(strings.TrimSpace(a.DataMessagePrefix), agent.DefaultDataPrompt)
	}
	return nil
}

// hasPorts reports whether a tool takes or gives tables.
func (h *Host) hasPorts(s *catalog.Snapshot) bool {
	if s == nil || len(h.flows.tools) == 0 { // most hosts have no workflows, and some have many tools
		return false
	}
	return slices.ContainsFunc(s.Tools(), func(t *tenon.Tool) bool {
		f := h.flows.tools[t.Remote]
		return t.Server == catalog.WorkflowServer && f != nil && len(f.Inputs)+len(f.Outputs) > 0
	})
}

// checkData holds a model's call of a workflow to its ports and to the tables that there
// are. What it says is the original's words.
func (h *Host) checkData(t *tenon.Tool, c *agent.DecideCommand) error {
	f := h.flows.tools[t.Remote]
	if f == nil || len(f.Inputs) == 0 {
		return nil
	}
	var args struct {
		Configuration map[string]json.RawMessage `json:"configuration"`
		Inputs        map[string]json.RawMessage `json:"data_inputs"`
	}
	if json.Unmarshal(c.Call.Arguments, &args) != nil {
		return nil // what they are instead is told by the schema
	}
	var required struct{ Required []string }
	_ = json.Unmarshal(f.Schema(), &required) // ours
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

// tabular makes a table of a result that is too large to be shown and is a list of rows:
// objects, alone or as the only list of an object.
func (h *Host) tabular(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, r *tenon.Result) ([]tenon.Table, error) {
	rows := rowsOf(r.Structured)
	if len(rows) < 2 || r.IsError {
		return nil, nil
	}
	var out tableBuffer
	if err := table.WriteRows(ctx, "-", rows, nil, table.WriteOptions{Stdout: &out}); err != nil {
		return nil, nil // it is no table then
	}
	t, _, err := summary(ctx, out.Bytes(), 0)
	if err != nil {
		return nil, err
	}
	t.Name, t.Description = c.Name, "Result of "+c.Name
	if t.Digest, err = h.store.PutBlob(ctx, a.Row.ID, out.Bytes()); err != nil {
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

// Tables returns the tables that a run's conversation has, by their ids, and those of
// them that calls of this run gave. See [Host.TableData] for their rows.
func (h *Host) Tables(ctx context.Context, run string) (all, made []tenon.Table, err error) {
	s, err := h.state(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	all, given := s.Tables()
	return all, all[given:], nil
}

var _ tenon.Toolset = dataTools{}
