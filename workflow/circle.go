package workflow

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon/catalog"
)

// Circle finds workflows that call one another, or one that calls itself, such as
// [a b a]; nil where there are none. Tools are those of a configuration, by name. Only steps
// that nothing keeps from being made, and whose failure nothing catches, count: a workflow
// may call itself while there is something left to do.
func Circle(tools map[string]*Workflow) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, called := range tools[name].calls() {
			if tools[called] == nil {
				continue
			}
			if circle := visit(called); circle != nil {
				return circle
			}
		}
		path, done[name] = path[:len(path)-1], true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if circle := visit(name); circle != nil {
			return circle
		}
	}
	return nil
}

// calls names the tools, as far as they can be workflows, that every run of the workflow
// calls.
func (w *Workflow) calls() (names []string) {
	sure := map[*step]bool{}
	for _, s := range w.sorted() {
		sure[s] = s.When == "" && s.Foreach == nil && !s.forgives() && !slices.ContainsFunc(s.needs, func(n *step) bool { return !sure[n] })
		if sure[s] && s.kind == StepTool && (s.Server == "" || s.Server == catalog.WorkflowServer) {
			names = append(names, s.Tool)
		}
	}
	return names
}
