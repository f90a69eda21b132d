package cli

import (
	"context"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// noteUnlisted warns about an entry of tools whose tool or arguments the server did not have when it was listed last:
// the entry has no effect, or names a tool that fails. Nothing is started. The entry is written either way, because the
// server may get the tool. So an error is not reported, and neither is a server without a known list.
func (a *app) noteUnlisted(ctx context.Context, name string) {
	h, err := a.open(ctx, opening{looks: true})
	if err != nil {
		return
	}
	defer func() { _ = h.Close() }() // it has only read
	e, ok := h.Service().Info().Config.Tools[name]
	if !ok {
		return
	}
	e = e.WithDefaults(name)
	s := h.Service().Connections()[e.Server]
	if s == nil {
		return // a kind of tenon, or a server that does not exist, which the check of the file reports
	}
	tools := s.LastListed()
	i := slices.IndexFunc(tools, func(t tenon.Tool) bool { return t.Remote == e.RemoteName })
	switch {
	case len(tools) == 0:
		return
	case i < 0:
		remotes := make([]string, len(tools))
		for i := range tools {
			remotes[i] = tools[i].Remote
		}
		a.note("server '%s' had no tool '%s' when it was listed last (tenon tools list --connect asks it)%s",
			e.Server, e.RemoteName, didYouMean(e.RemoteName, remotes))
		return
	case e.ArgumentsMode == catalog.ArgumentsReplace || e.ArgumentsMode == catalog.ArgumentsIgnore:
		return // the server's schema does not count
	}
	var names []string
	for _, arg := range e.Arguments {
		names = append(names, arg.Name)
	}
	lacking, similar := catalog.Lacking(tools[i].Input, names)
	for i, arg := range lacking {
		hint := ""
		if similar[i] != "" {
			hint = "; did you mean '" + similar[i] + "'?"
		}
		a.note("tool '%s' of server '%s' had no argument '%s' when it was listed last, so the argument is left out%s",
			e.RemoteName, e.Server, arg, hint)
	}
}
