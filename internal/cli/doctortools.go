package cli

import (
	"context"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// doctorTools bounds the number of tools that are named for one reason.
const doctorTools = 20

// tools checks the tools of the servers that answered, as a model would see them. It warns of tools without a
// description and of tools that are left out.
func (d *doctor) tools(ctx context.Context, h *host.Host) {
	var answered []string
	for _, c := range d.checks {
		if c.Area == "server" && c.Status != checkFail {
			answered = append(answered, c.Name)
		}
	}
	if len(answered) == 0 {
		return
	}
	snapshot, problems, err := h.Tools().Snapshot(ctx, answered...)
	if err != nil {
		d.add(check{Area: "tool"}.failed(err, ""))
		return
	}
	for _, p := range problems {
		d.add(check{Area: "tool", Status: checkWarn, Code: tenon.ErrorCode(p.Err), Text: p.Err.Error(),
			Remedy: "tenon tools list --excluded shows the offered tools, and why others are left out"})
	}
	var silent []*tenon.Tool
	for _, t := range snapshot.Tools() {
		if t.Description == "" {
			silent = append(silent, t)
		}
	}
	for i, t := range silent {
		if i == doctorTools {
			d.add(check{Area: "tool", Status: checkWarn, Text: fmt.Sprintf("%s more have no description",
				plural(len(silent)-i, "tool")), Remedy: "tenon tools lint names them all"})
			break
		}
		d.add(check{Area: "tool", Name: t.Name, Status: checkWarn,
			Text:   fmt.Sprintf("of server %s has no description: a model can only guess what it is for", t.Server),
			Remedy: fmt.Sprintf("write one: tools.%s.description", t.Name)})
	}
}
