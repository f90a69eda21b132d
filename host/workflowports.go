package host

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow/runner"
)

// checkPorts compares the steps that call workflows with the tables of these workflows, before any step runs. Called
// are the tools of the steps, by id.
func (h *Host) checkPorts(f *runner.Flow, called map[string]*tenon.Tool) error {
	bad := func(step string, format string, args ...any) error {
		return tenon.Errorf(tenon.CodeInvalid, "step '"+step+"' of workflow '"+f.Name+"': "+format, args...)
	}
	for i, st := range f.Steps {
		if t := called[st.ID]; t != nil {
			callee := h.callee(t)
			if callee == nil && len(st.Inputs) > 0 {
				return bad(st.ID, "tool '%s' is no workflow and takes no tables", tenon.Visible(st.Tool))
			}
			if callee != nil {
				if err := callee.CheckPorts(slices.Sorted(maps.Keys(st.Inputs))); err != nil {
					return bad(st.ID, "%w", err)
				}
			}
		}
		for _, ref := range slices.Concat(slices.Sorted(maps.Values(f.QueryTables(i))),
			slices.Sorted(maps.Values(st.Inputs))) {
			if text := h.noPort(called, ref); text != "" {
				return bad(st.ID, "%s", text)
			}
		}
	}
	for _, out := range f.Outputs {
		if text := h.noPort(called, out.From); text != "" {
			return tenon.Errorf(tenon.CodeInvalid, "output '%s' of workflow '%s': %s", out.Name, f.Name, text)
		}
	}
	return nil
}

// callee returns the workflow that a call of the tool runs, or nil if the tool is not a workflow.
func (h *Host) callee(t *tenon.Tool) *runner.Flow {
	if !h.kinds[t.Server].flows {
		return nil
	}
	return h.flows.tools[t.Remote]
}

// noPort returns an error text if the tool of a referenced step does not return the referenced table. It returns "" if
// the table exists, or if the reference is not to a table of a step.
func (h *Host) noPort(called map[string]*tenon.Tool, ref string) string {
	id, port, ok := strings.Cut(ref, ".")
	t := called[id]
	if !ok || t == nil {
		return ""
	}
	callee := h.callee(t)
	if callee == nil {
		return "there is no table '" + ref + "': tool '" + t.Name + "' is no workflow"
	}
	var names []string
	for _, out := range callee.Outputs {
		names = append(names, out.Name)
	}
	if slices.Contains(names, port) {
		return ""
	}
	return "there is no table '" + ref + "': workflow '" + callee.Name + "' returns no table of that name" +
		nearest(port, names)
}
