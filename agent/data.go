package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// The data repository of a conversation is a list of tables, numbered in the order in which they were added. The
// model sees the names and columns of the tables, but no cells. It passes the number of a table to a tool as its id.

// DefaultDataPrompt is the text before the list of tables that the model sees.
const DefaultDataPrompt = "Data tables are available. You see their ids, names and columns, but not their rows. " +
	"Pass the ids to tools that take tables. Tables that a tool returns are listed with new ids.\n\n## Data repository:"

// dataUpdate is the heading of the list of tables that a call has returned.
const dataUpdate = "## Data repository update"

// noData replaces an empty list.
const noData = "No data available. Use a tool to produce data."

// maxData bounds the tables of a conversation.
const maxData = 1000

// Tables returns the tables of the conversation, in the order of their ids. given is the number of tables at the
// start of the run.
func (s *State) Tables() (all []tenon.Table, given int) { return slices.Clip(s.tables), s.given }

// addData fills the repository, and adds a message about the tables before the question.
func (s *State) addData(parent *State) {
	if parent != nil {
		s.tables, s.toldData = slices.Clip(parent.tables), parent.toldData
	}
	first := len(s.tables)
	s.tables = append(s.tables, s.spec.Data...)
	s.given = len(s.tables)
	switch {
	case s.spec.Task != "":
	case s.spec.DataPrompt != "" && !s.toldData:
		text := noData
		if len(s.tables) > 0 {
			text = listData(s.tables, 0)
		}
		s.toldData = true
		s.add(tenon.UserMessage(s.spec.DataPrompt + "\n\n" + text))
	case len(s.spec.Data) > 0:
		s.add(tenon.UserMessage(dataUpdate + "\n\n" + listData(s.tables, first)))
	}
}

// keepData stores the tables that a call returned, and lists them in the call's result.
func (s *State) keepData(c *call, o *Outcome) {
	room := max(maxData-len(s.tables), 0)
	if len(o.Outputs) == 0 || c.result == nil {
		return
	}
	text := ""
	first := len(s.tables)
	s.tables = append(slices.Clip(s.tables), o.Outputs[:min(room, len(o.Outputs))]...)
	if len(s.tables) > first {
		text = dataUpdate + "\n\n" + listData(s.tables, first)
	}
	if lost := len(o.Outputs) - room; lost > 0 {
		text += fmt.Sprintf("\n\n[%d tables are not kept: the data repository holds %d]", lost, maxData)
	}
	content := slices.Clone(c.result.Content)
	if n := len(content); n > 0 && content[n-1].Type == tenon.ContentText && content[n-1].Text != "" {
		content[n-1] = tenon.Text(content[n-1].Text + "\n\n" + text)
	} else {
		content = append(content, tenon.Text(text))
	}
	c.result.Content = content
}

// listData writes tables as a fenced block of YAML. first is the id of the first one.
func listData(tables []tenon.Table, first int) string {
	var b strings.Builder
	b.WriteString("```yaml\n")
	for i, t := range tables[first:] {
		fmt.Fprintf(&b, "%d:\n  name: %s\n  description: %s\n  type: Table\n  spec:\n    rows: %d\n", first+i,
			yamlText(t.Name), yamlText(t.Description), t.Rows)
		if len(t.Columns) == 0 {
			b.WriteString("    columns: {}\n")
			continue
		}
		b.WriteString("    columns:\n")
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "      %s: %s\n", yamlText(c.Name), yamlText(c.Type))
		}
	}
	return b.String() + "```"
}

// plainYAML matches strings that need no quotes in YAML.
var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*( [A-Za-z0-9_]+)*$`)

func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if plainYAML.MatchString(s) {
		return s
	}
	return string(mustJSON(tenon.Visible(s))) // JSON text is valid YAML
}

// inputs returns the tables that the data_inputs of a workflow call name. The decision has already checked that they
// exist.
func (s *State) inputs(args json.RawMessage) map[string]tenon.Table {
	var a struct {
		Inputs map[string]json.RawMessage `json:"data_inputs"`
	}
	_ = json.Unmarshal(args, &a)
	var out map[string]tenon.Table
	for port, raw := range a.Inputs {
		if i, ok := DataID(raw); ok && i < len(s.tables) {
			if out == nil {
				out = map[string]tenon.Table{}
			}
			out[port] = s.tables[i]
		}
	}
	return out
}

// DataID reads a table id as a model writes it: a number, also with a fraction of zero, which JSON Schema accepts as
// an integer, or a string with a number.
func DataID(raw json.RawMessage) (int, bool) {
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f >= 0 && f <= maxData && f == math.Trunc(f) {
		return int(f), true
	}
	text := strings.Trim(string(raw), `"`)
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}

// CheckData checks the table ids in a call's arguments. ports are the data ports of the tool, count is the number of
// tables in the conversation. It returns nil or an error with code invalid.
func CheckData(ports []string, ids map[string]json.RawMessage, count int) error {
	var missing []string
	for _, p := range ports {
		if _, ok := ids[p]; !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "Missing data inputs for ports: %s", strings.Join(missing, ", "))
	}
	for _, p := range ports { // the schema checks other members
		if i, ok := DataID(ids[p]); !ok || i >= count {
			return NoData(strings.Trim(string(ids[p]), `"`), count)
		}
	}
	return nil
}

// NoData returns the error for an unknown table id.
func NoData(id string, count int) error {
	list := make([]string, count)
	for i := range list {
		list[i] = "'" + strconv.Itoa(i) + "'"
	}
	return tenon.Errorf(tenon.CodeInvalid, "No data item found with id: %s. Available ids: [%s]", tenon.Visible(id),
		strings.Join(list, ", "))
}
