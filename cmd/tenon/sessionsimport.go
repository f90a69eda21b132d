package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newSessionsImport(a *app) *cobra.Command {
	var im host.Import
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take a conversation out of a file: an export, messages as JSON, or Markdown",
		Long: "Takes a conversation into the store and prints the session's id, for tenon run -s. FILE is what tenon sessions export\n" +
			"wrote, or - for stdin. An export as JSON comes back as it was: sessions, runs, all events and what they need, or\n" +
			"nothing of it. Messages as JSON (of tenon run --conversation, or of OpenAI's chat) and Markdown hold only what was said:\n" +
			"with Markdown pictures, reasoning and the ends of long results are gone.\n\n" +
			"The conversation can be shown, searched, forked and gone on with. Its runs are marked: nothing is added to them, tools\n" +
			"that were allowed in them ask again, and a run that had not ended never goes on. A session that is in the store\n" +
			"already is refused; --copy takes it in under new ids, beside what is there.",
		Example: "  tenon sessions import talk.json\n  tenon run -s \"$(tenon sessions import talk.md)\" \"Where were we?\"",
		Args:    args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cmd.Flags().Changed("title") && strings.TrimSpace(im.Title) == "" {
				return usage(cmd, "--title is empty")
			}
			im.From = a.in
			if file := args[0]; file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return tenon.Errorf(tenon.CodeInvalid, "%w", err)
				}
				defer func() { _ = f.Close() }() // it was only read
				im.From = f
				if ext := strings.ToLower(filepath.Ext(file)); im.Form == "" && (ext == ".md" || ext == ".markdown") {
					im.Form = host.FormMarkdown
				}
			}
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			r, err := h.Import(cmd.Context(), im)
			switch {
			case err != nil:
				return err
			case a.isJSON():
				return a.printJSON(r)
			}
			a.imported(r)
			return a.printText(r.Session.ID)
		},
	}
	cmd.Flags().BoolVar(&im.Copy, "copy", false, "new ids, so that the session may be in the store already")
	cmd.Flags().Var(&enum{&im.Form, []string{host.FormJSON, host.FormMarkdown}}, "format", "`FORM`: json or markdown (default: by the name of FILE and how it begins)")
	cmd.Flags().StringVar(&im.Title, "title", "", "`TITLE` of the session (default: that of the file)")
	return cmd
}

// imported says what there is now that was not said before.
func (a *app) imported(r host.ImportReport) {
	if r.SaidOnly {
		a.hint("what was said was imported; how it came about is not part of the file")
		return
	}
	a.hint("imported %s of %s", plural(r.Runs, "run"), plural(r.Sessions, "session"))
	if r.Unended > 0 {
		a.note("%s had not ended and will not go on; ask again in the session", plural(r.Unended, "run"))
	}
	if r.Masked > 0 {
		a.note("%s came with masked secrets", plural(r.Masked, "large value"))
	}
}
