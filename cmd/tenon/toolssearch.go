package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
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
		Short: "Find tools by what they do",
		Long: "Finds tools by words of their names, descriptions and arguments and of their server, the best first. Words that mean\n" +
			"much the same count, too, and so do Chinese characters. It fails (status 1) where nothing fits.\n\n" + adhocHelp,
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
			return a.foundTools(query, snapshot.Index().Search(query, limit))
		},
	}
	s.flags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 10, "the best `N`")
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
