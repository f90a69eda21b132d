package cli

import (
	"context"
	"slices"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
)

// allowed lists the approvals that cover later calls of the conversation, or withdraws one of them by its id or tool.
func (t *talk) allowed(ctx context.Context, ref string) error {
	list, err := t.h.Approvals().Grants(ctx, "")
	if err != nil {
		return err
	}
	session := t.session()
	list = slices.DeleteFunc(list, func(g host.Grant) bool { return g.Session != "" && g.Session != session })
	if ref == "" {
		if len(list) == 0 {
			t.note("no tool is allowed for later calls")
			return nil
		}
		c := tui.Choices{Title: "withdraw an approval: its tool asks again", Command: "/allowed"}
		for _, g := range list {
			about := g.Tool() + ", always"
			if g.Session != "" {
				about = g.Tool() + ", in this conversation"
			}
			c.Items = append(c.Items, tui.Choice{Value: g.ID, About: about + ", " + t.a.when(g.Created)})
		}
		t.p.Send(c)
		return nil
	}
	g, err := host.FindGrant(list, ref)
	if err != nil {
		return err
	}
	if err := t.h.Approvals().Revoke(ctx, g.Principal, g.ID); err != nil {
		return err
	}
	t.note("%s asks again", safeLine(g.Tool()))
	return nil
}
