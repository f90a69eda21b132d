package workflow

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Graph is what waits for what in a workflow: inputs, steps, outputs and the message.
type Graph struct {
	Name  string      `json:"name"`
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one box. Level is how many arrows lead to it at most, one after another.
type GraphNode struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // input, output, message, or that of the step
	Label string `json:"label,omitempty"`
	Level int    `json:"level"`
}

// GraphEdge is an arrow from what is waited for to what waits.
type GraphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Graph draws the workflow.
func (w *Workflow) Graph() Graph {
	g := Graph{Name: w.Name, Edges: []GraphEdge{}}
	level := map[string]int{}
	for _, in := range w.Inputs {
		g.Nodes = append(g.Nodes, GraphNode{ID: in.Name, Kind: "input"})
	}
	edge := func(from, to string) int {
		from, _, _ = strings.Cut(from, ".")
		if e := (GraphEdge{from, to}); !slices.Contains(g.Edges, e) {
			g.Edges = append(g.Edges, e)
		}
		return level[from] + 1
	}
	for _, s := range w.sorted() {
		most := 0
		for _, n := range s.needs {
			most = max(most, edge(n.ID, s.ID))
		}
		for _, t := range s.tables {
			if w.inputs[t] != nil {
				most = max(most, edge(t, s.ID))
			}
		}
		level[s.ID] = most
		g.Nodes = append(g.Nodes, GraphNode{ID: s.ID, Kind: s.kind, Label: s.label(), Level: most})
	}
	for _, out := range w.Outputs {
		id := "output " + out.Name
		g.Nodes = append(g.Nodes, GraphNode{ID: id, Kind: "output", Level: edge(out.From, id)})
	}
	if w.Message.From != "" {
		id := "message"
		if w.byID[id] != nil || w.inputs[id] != nil {
			id = "the message" // no name of theirs has a space
		}
		g.Nodes = append(g.Nodes, GraphNode{ID: id, Kind: "message", Level: edge(w.Message.From, id)})
	}
	return g
}

// sorted are the steps, each behind those that it waits for.
func (w *Workflow) sorted() []*step {
	var list []*step
	seen := map[*step]bool{}
	var visit func(s *step)
	visit = func(s *step) {
		if seen[s] {
			return
		}
		seen[s] = true
		for _, n := range s.needs {
			visit(n)
		}
		list = append(list, s)
	}
	for _, s := range w.steps {
		visit(s)
	}
	return list
}

// label is what a step does, in a few words.
func (s *step) label() string {
	text := map[string]string{StepTool: s.Tool, StepSQL: s.SQL, StepTemplate: s.Template, StepAgent: s.Agent}[s.kind]
	switch {
	case s.kind == StepHTTP:
		text = methodOf(s) + " " + s.HTTP.URL
	case s.kind == StepTool && s.Server != "":
		text = s.Server + "." + s.Tool
	case s.kind == StepTable:
		text = s.Table.CSV + s.Table.Arrow
		if text == "" {
			text = "rows"
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxLabel {
		text = string(r[:maxLabel-1]) + "…"
	}
	var marks []string
	if s.When != "" {
		marks = append(marks, "when")
	}
	if s.Foreach != nil {
		marks = append(marks, "foreach")
	}
	if len(marks) > 0 {
		text += " (" + strings.Join(marks, ", ") + ")"
	}
	return text
}

const maxLabel = 40

// Text draws the graph as lines: what comes first stands first, and each line says what
// it waits for.
func (g Graph) Text() string {
	wait := map[string][]string{}
	for _, e := range g.Edges {
		wait[e.To] = append(wait[e.To], e.From)
	}
	nodes := slices.Clone(g.Nodes)
	slices.SortStableFunc(nodes, func(a, b GraphNode) int { return a.Level - b.Level })
	wide, kinds := 0, 0
	for _, n := range nodes {
		wide, kinds = max(wide, len([]rune(n.ID))), max(kinds, len(n.Kind))
	}
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%2d  %-*s  %-*s", n.Level, wide, n.ID, kinds, n.Kind)
		if n.Label != "" {
			b.WriteString("  " + n.Label)
		}
		if from := wait[n.ID]; len(from) > 0 {
			b.WriteString("  <- " + strings.Join(from, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The sizes of the picture, in pixels.
const (
	boxWide, boxHigh = 200, 46
	gapWide, gapHigh = 60, 18
	margin           = 20
)

var boxColours = map[string]string{"input": "#dbeafe", "output": "#dcfce7", "message": "#dcfce7", StepTool: "#fef3c7", StepHTTP: "#fef3c7", StepAgent: "#fae8ff"}

// SVG draws the graph as a picture: levels from left to right.
func (g Graph) SVG() []byte {
	at := map[string][2]int{}
	rows := map[int]int{}
	deep, high := 0, 0
	for _, n := range g.Nodes {
		at[n.ID] = [2]int{margin + n.Level*(boxWide+gapWide), margin + rows[n.Level]*(boxHigh+gapHigh)}
		rows[n.Level]++
		deep, high = max(deep, n.Level), max(high, rows[n.Level])
	}
	var b bytes.Buffer
	width, height := 2*margin+(deep+1)*boxWide+deep*gapWide, 2*margin+high*(boxHigh+gapHigh)-gapHigh
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(g.Name))
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>` + "\n")
	for _, e := range g.Edges {
		from, to := at[e.From], at[e.To]
		x1, y1, x2, y2 := from[0]+boxWide, from[1]+boxHigh/2, to[0], to[1]+boxHigh/2
		fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="#64748b" marker-end="url(#tip)"/>`+"\n", x1, y1, x1+gapWide/2, y1, x2-gapWide/2, y2, x2, y2)
	}
	for _, n := range g.Nodes {
		p := at[n.ID]
		colour := boxColours[n.Kind]
		if colour == "" {
			colour = "#f1f5f9"
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#94a3b8"/>`+"\n", p[0], p[1], boxWide, boxHigh, colour)
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", p[0]+10, p[1]+19, escaped(short(n.ID, 26)))
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#475569" font-size="11">%s</text>`+"\n", p[0]+10, p[1]+36, escaped(short(strings.TrimSpace(n.Kind+" "+n.Label), 32)))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// Node tells of one kind of step.
type Node struct {
	Kind   string   `json:"kind"`
	About  string   `json:"about"`
	Keys   []string `json:"keys"`
	In     string   `json:"tables_in"`
	Out    string   `json:"tables_out"`
	Result []string `json:"result"`
}

// Nodes are the kinds of steps.
func Nodes() []Node {
	common := []string{"after", "when", "foreach", "retry", "timeout", "on_error"}
	node := func(kind, about, in, out string, not ...string) Node {
		n := Node{Kind: kind, About: about, In: in, Out: out}
		n.Keys = append([]string{kind}, keysOf[kind]...)
		for _, k := range common {
			if !slices.Contains(not, k) {
				n.Keys = append(n.Keys, k)
			}
		}
		s := step{Step: &Step{}, kind: kind}
		n.Result = s.fields()
		return n
	}
	return []Node{
		node(StepTool, "calls a tool", "ports of a workflow", "ports of a workflow"),
		node(StepSQL, "one SELECT over tables", "any", "one", "foreach", "retry"),
		node(StepTemplate, "a text with values in it", "none", "none", "retry", "timeout"),
		node(StepAgent, "asks an agent", "none", "none"),
		node(StepHTTP, "sends a request", "none", "none"),
		node(StepTable, "rows, a CSV or an Arrow file", "none", "one", "foreach", "retry"),
	}
}
