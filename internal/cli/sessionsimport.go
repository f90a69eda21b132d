package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/transcript"
)

func newSessionsImport(a *app) *cobra.Command {
	var im transcript.Import
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a conversation from JSON or Markdown",
		Long: "Imports a conversation into the store and prints the session's id, for tenon run -s. FILE is the\n" +
			"output of tenon sessions export, or - for stdin. A JSON export is restored exactly: sessions,\n" +
			"runs, events and the data that they need; if a part is invalid, nothing is imported. Messages as\n" +
			"JSON (of tenon run --conversation, or of OpenAI's chat API) and Markdown contain only messages:\n" +
			"Markdown has no pictures and no reasoning, and long results are cut.\n\n" +
			"The conversation can be shown, searched, forked and continued. Its runs are marked as imported:\n" +
			"nothing is added to them, tools that were allowed in them ask again, and a run that had not ended\n" +
			"never resumes. A session that is already in the store is refused; --copy imports it under new ids.",
		Example: "  tenon sessions import talk.json\n  tenon run -s \"$(tenon sessions import talk.md)\" \"Where " +
			"were we?\"",
		Args: args(1, 1, "FILE"),
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
				defer func() { _ = f.Close() }()
				im.From = f
				if ext := strings.ToLower(filepath.Ext(file)); im.Format == "" && (ext == ".md" || ext == ".markdown") {
					im.Format = transcript.FormatMarkdown
				}
			}
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			r, err := h.Sessions().Transcripts().Import(cmd.Context(), im)
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
	cmd.Flags().BoolVar(&im.Copy, "copy", false, "import under new ids, even if the store has the session")
	cmd.Flags().Var(&enum{&im.Format, []string{transcript.FormatJSON, transcript.FormatMarkdown}}, "format",
		"`FORM`: json or markdown (default: by the name of FILE and how it begins)")
	cmd.Flags().StringVar(&im.Title, "title", "", "`TITLE` of the session (default: the title in the file)")
	return cmd
}

// imported prints what an import added and what it left out.
func (a *app) imported(r transcript.ImportReport) {
	if r.SaidOnly {
		a.hint("imported the messages only: the file has no runs and events")
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
