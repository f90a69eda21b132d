package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
)

// foundTool is a tool as tools search prints it.
type foundTool struct {
	tenon.Tool
	Kind  string  `json:"kind"`
	Score float64 `json:"score"`
}

func newToolsSearch(a *app) *cobra.Command {
	s := &adhoc{}
	var limit int
	cmd := &cobra.Command{
		Use:   "search WORDS... [--limit N] [--url URL | -- COMMAND ARGS...]",
		Short: "Search tools by words",
		Long: "Searches the names, descriptions and arguments of tools and the names of their servers, and prints\n" +
			"the best matches first. Similar words match too, as do Chinese characters. With\n" +
			"tool_search.embeddings in the configuration, tools of a similar meaning match as well. Fails with\n" +
			"status 1 if no tool matches.\n\n" +
			adhocHelp,
		Example: "  tenon tools search \"read a file\"\n  tenon tools search weather tomorrow --limit 3",
		Args:    args(1, -1, "a word to look for"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = s.split(cmd, args); err != nil {
				return err
			}
			if limit < 1 || limit > 1000 {
				return usage(cmd, "--limit is from 1 to 1000")
			}
			query := strings.TrimSpace(strings.Join(args, " "))
			if query == "" {
				return usage(cmd, "there are no words to look for")
			}
			h, snapshot, err := a.openTools(cmd.Context(), opening{adhoc: s, connect: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			return a.foundTools(query, host.SearchTools(cmd.Context(), h, snapshot, query, limit))
		},
	}
	s.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 10, "at most `N` tools")
	return cmd
}

func (a *app) foundTools(query string, hits []catalog.Hit) error {
	list := make([]foundTool, len(hits))
	for i, h := range hits {
		list[i] = foundTool{*h.Tool, h.Tool.KindName(), float64(int(h.Score*1000+0.5)) / 1000}
	}
	err := printList(a, list, []string{"name", "server", "kind", "description"}, func(t foundTool) []string {
		return []string{t.Name, t.Server, kind(t.Annotations), about(t.Description)}
	})
	if err != nil || len(hits) > 0 {
		return err
	}
	if !a.isJSON() {
		a.note("no tool fits '%s'", query)
	}
	return reported{tenon.Errorf(tenon.CodeInternal, "no tool fits '%s'", query)}
}
