package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/host"
)

// renamedShown is the number of names that the remark about renamed tools lists.
const renamedShown = 3

// tellRenamed reports the tools that were renamed because tools of several servers have the same name. It does so once
// a day, and again if the names change. Without the report, adding a server would silently rename tools of other
// servers.
func (a *app) tellRenamed(ctx context.Context, h desk) {
	here, ok := h.(*host.Host)
	if !ok || a.quiet || a.renamedTold {
		return
	}
	cfg := here.Service().Info().Config
	if len(cfg.Servers) < 2 {
		return
	}
	a.renamedTold = true
	list, _, err := here.Tools().List(ctx)
	if err != nil {
		return // the run reports it
	}
	list = slices.DeleteFunc(list, func(t host.ToolInfo) bool { // somebody has decided how the names differ
		origin := cfg.Origin("servers." + t.Server + ".naming.on_collision")
		return origin != "" && origin != "default"
	})
	if text := renamedText(list); text != "" {
		for _, fresh := range a.freshToday(cfg.Path, text) {
			a.note("%s", fresh)
		}
	}
}

// renamedText describes the renamed tools. It returns "" if there are none.
func renamedText(list []host.ToolInfo) string {
	names, servers := map[string][]string{}, map[string]bool{}
	var wanted []string
	for _, t := range list {
		want := t.Rules.Wanted
		if want == "" {
			continue
		}
		if names[want] == nil {
			wanted = append(wanted, want)
		}
		names[want] = append(names[want], t.Name)
		servers[t.Server] = true
	}
	wanted = slices.DeleteFunc(wanted, func(want string) bool { return len(names[want]) < 2 })
	if len(wanted) == 0 {
		return ""
	}
	slices.Sort(wanted)
	var parts []string
	for _, want := range wanted[:min(renamedShown, len(wanted))] {
		parts = append(parts, want+" is "+strings.Join(names[want], " and "))
	}
	text := "several servers have tools of the same names, so these tools have other names: " +
		strings.Join(parts, ", ")
	if n := len(wanted) - renamedShown; n > 0 {
		text += " and " + plural(n, "more name")
	}
	return safeLine(text + "; tenon tools list shows them, servers.NAME.naming sets them")
}
