package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// listFar lists the tools of the remote tenon.
func (a *app) listFar(ctx context.Context, tokens bool) (err error) {
	f, err := a.far(ctx)
	if err != nil {
		return err
	}
	defer closing(f, &err)
	all, problems, err := f.Tools().List(ctx)
	if err != nil {
		return err
	}
	a.problems(problems)
	list, total := make([]listedTool, 0, len(all)), 0
	for _, t := range all {
		l := listedTool{Tool: t.Tool, Kind: t.KindName()}
		if tokens {
			l.Tokens = t.Tokens
			total += t.Tokens
		}
		list = append(list, l)
	}
	switch {
	case a.quiet && len(list) == 0:
		return reported{errors.New("there are no tools")}
	case a.quiet:
		return nil
	case tokens && a.format == formatJSON:
		return a.printJSON(map[string]any{"tools": list, "total": total})
	case tokens:
		slices.SortStableFunc(list, func(x, y listedTool) int { return y.Tokens - x.Tokens })
		return printList(a, list, []string{"tokens", "name", "server", "description"}, func(t listedTool) []string {
			return []string{strconv.Itoa(t.Tokens), t.Name, t.Server, about(t.Description)}
		})
	}
	return printList(a, list, []string{"name", "server", "kind", "description"}, func(t listedTool) []string {
		return []string{t.Name, t.Server, kind(t.Annotations), about(t.Description)}
	})
}

// showFar shows a tool of the remote tenon.
func (a *app) showFar(ctx context.Context, name string, explain bool) (err error) {
	f, err := a.far(ctx)
	if err != nil {
		return err
	}
	defer closing(f, &err)
	t, err := f.Tools().Get(ctx, name)
	switch {
	case err != nil:
		return err
	case explain:
		return a.explain(t.Steps, t.Server, t.Remote, t.Offered)
	case !t.Offered:
		return tenon.Errorf(tenon.CodeNotFound, "the tool '%s' of server '%s' is left out: %s", t.Remote, t.Server,
			tenon.Visible(t.Reason))
	case a.isJSON():
		return a.printJSON(shownTool{Tool: t.Tool, Kind: t.KindName(), Arguments: t.Arguments, Tokens: t.Tokens,
			Unchecked: t.Unchecked})
	}
	return a.showTool(&t.Tool, t.Unchecked)
}

// farName returns the exposed name of a remote tool. If there is none, the error suggests a similar name.
func (f *far) farName(ctx context.Context, name string) (string, error) {
	t, err := f.Tools().Get(ctx, name)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return "", f.unknownTool(ctx, name)
	case err != nil:
		return "", err
	case !t.Offered:
		return "", tenon.Errorf(tenon.CodeNotFound, "the tool '%s' of server '%s' is left out: %s", t.Remote,
			t.Server, tenon.Visible(t.Reason))
	}
	return t.Name, nil
}

// unknownTool returns the error for an unknown tool, with a similar name as a suggestion.
func (f *far) unknownTool(ctx context.Context, name string) error {
	all, _, err := f.Tools().List(ctx)
	if err != nil {
		return err
	}
	return tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'%s", name, didYouMean(name, toolNames(all)))
}

func toolNames(list []host.ToolInfo) []string {
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}
