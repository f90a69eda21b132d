package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/docs"
)

// docsIndex is the name of the list of pages for programs.
const docsIndex = "llms.txt"

func newDocs(a *app) *cobra.Command {
	f := docsFlags{}
	cmd := &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Print a page of the guide or of the reference",
		Long: "Lists the pages of the guide and of the reference, or prints one as Markdown. They describe this\n" +
			"version: the formats of files, every key, the HTTP APIs. The page llms.txt lists them for\n" +
			"programs, with a sentence each.\n\n" +
			"--serve shows them in a browser, at an address of this machine only: a site that make docs-site\n" +
			"built, if --site names it or if it is in share/doc/tenon/site beside the folder of the program,\n" +
			"otherwise these pages as text.",
		Example: "  tenon docs\n  tenon docs scripts\n  tenon docs guide/servers\n  tenon docs llms.txt\n" +
			"  tenon docs --serve --site testresults/site",
		Args: args(0, 1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var words []cobra.Completion
			for _, p := range docs.Pages() {
				words = append(words, cobra.CompletionWithDesc(p.Name, p.Title))
			}
			words = append(words, cobra.CompletionWithDesc(docsIndex, "All pages, for programs"))
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.serve && len(args) > 0:
				return usage(cmd, "--serve serves all pages: leave %s out", tenon.Visible(args[0]))
			case f.serve:
				return a.serveDocs(cmd.Context(), f)
			case f.site != "" || f.listen != "":
				return usage(cmd, "--site and --listen need --serve")
			}
			pages := docs.Pages()
			if len(args) == 1 && args[0] == docsIndex {
				pages = []docs.Page{{Name: docsIndex, Title: "tenon", Text: docs.Index()}}
			}
			if len(args) == 1 {
				p, err := pageOf(pages, args[0])
				if err != nil {
					return err
				}
				if a.isJSON() {
					return a.printJSON(p)
				}
				return a.printText(p.Text)
			}
			for i := range pages {
				pages[i].Text = ""
			}
			return printList(a, pages, []string{"page", "title"}, func(p docs.Page) []string {
				return []string{p.Name, p.Title}
			})
		},
	}
	cmd.Flags().BoolVar(&f.serve, "serve", false, "serve the documentation to a browser until Ctrl-C")
	cmd.Flags().StringVar(&f.site, "site", "", "`FOLDER` of a documentation site, for --serve")
	cmd.Flags().StringVar(&f.listen, "listen", "", "`ADDRESS:PORT` of --serve, on loopback (default: "+docsAddress+")")
	return cmd
}

// pageOf returns the page of a name. It may be written as a path of the repository, as a link has it.
func pageOf(pages []docs.Page, name string) (docs.Page, error) {
	plain := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "docs/"), "reference/"), ".md")
	names := make([]string, len(pages))
	for i, p := range pages {
		names[i] = p.Name
	}
	for _, word := range []string{name, plain, "guide/" + plain} {
		if i := slices.Index(names, word); i >= 0 {
			return pages[i], nil
		}
	}
	return docs.Page{}, tenon.Errorf(tenon.CodeNotFound, "there is no page '%s'%s; tenon docs lists them",
		tenon.Visible(name), didYouMean(plain, names))
}
