package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Graph is the dependency graph of a workflow: inputs, steps, outputs and the message.
type Graph struct {
	Name  string      `json:"name"`
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one box. Level is the length of the longest path of arrows to it.
type GraphNode struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // input, output, message, or the kind of the step
	Label string `json:"label,omitempty"`
	Level int    `json:"level"`
}

// GraphEdge is an arrow from a node to a node that waits for it.
type GraphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Graph returns the dependency graph of the workflow.
func (w *Workflow) Graph() Graph {
	g := Graph{Name: w.Name, Edges: []GraphEdge{}}
	level, drawn := map[string]int{}, map[GraphEdge]bool{}
	for _, in := range w.Inputs {
		g.Nodes = append(g.Nodes, GraphNode{ID: in.Name, Kind: "input"})
	}
	edge := func(from, to string) int {
		from, _, _ = strings.Cut(from, ".")
		if e := (GraphEdge{from, to}); !drawn[e] {
			g.Edges, drawn[e] = append(g.Edges, e), true
		}
		return level[from] + 1
	}
	for _, s := range w.sorted() {
		most := 0
		for _, n := range s.needs {
			most = max(most, edge(n.ID, s.ID))
		}
		for _, name := range slices.Concat(s.tables, s.reads) {
			if w.inputs[name] != nil {
				most = max(most, edge(name, s.ID))
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
			id = "the message" // unique: names of steps and inputs contain no space
		}
		g.Nodes = append(g.Nodes, GraphNode{ID: id, Kind: "message", Level: edge(w.Message.From, id)})
	}
	return g
}

// sorted returns the steps in an order in which each follows the steps it waits for.
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

// label returns a short description of a step.
func (s *step) label() string {
	text := map[string]string{StepTool: s.Tool, StepSQL: s.SQL, StepTemplate: s.Template, StepAgent: s.Agent}[s.kind]
	switch {
	case s.kind == StepHTTP:
		text = methodOf(s) + " " + s.HTTP.URL
	case s.kind == StepTool && s.Server != "":
		text = s.Server + "." + s.Tool
	case s.kind == StepTable:
		text = cmp.Or(s.Table.CSV+s.Table.Arrow, "rows")
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

// Text formats the graph as lines, ordered by level. Each line lists the nodes it waits for.
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

// Node describes one kind of step.
type Node struct {
	Kind   string   `json:"kind"`
	About  string   `json:"about"`
	Keys   []string `json:"keys"`
	In     string   `json:"tables_in"`
	Out    string   `json:"tables_out"`
	Result []string `json:"result"`
}

// Nodes returns the kinds of steps.
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
