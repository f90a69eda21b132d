package workflow

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon/catalog"
)

// Circle finds a cycle of workflows that call each other or themselves, such as [a b a]. It returns nil if there is
// none. tools maps names of a configuration to workflows. Only unconditional calls whose failure is not handled count,
// so a workflow may call itself under a condition.
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

// calls returns the tools, possibly workflows, that every run of the workflow calls.
func (w *Workflow) calls() (names []string) {
	sure := map[*step]bool{}
	for _, s := range w.sorted() {
		sure[s] = s.When == "" && s.Foreach == nil && !s.toleratesFailure() &&
			!slices.ContainsFunc(s.needs, func(n *step) bool { return !sure[n] })
		if sure[s] && s.kind == StepTool && (s.Server == "" || s.Server == catalog.WorkflowServer) {
			names = append(names, s.Tool)
		}
	}
	return names
}
