package cli

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tenonhq/tenon/host"
)

// The values of sessions export --format.
const (
	exportJSON     = "json"
	exportMarkdown = "markdown"
)

func newSessionsExport(a *app) *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "export [SESSION]",
		Short: "Export a conversation as JSON or Markdown",
		Long: "Writes a session, by default the last one. JSON is complete: the session, the parts of other\n" +
			"sessions that it was forked from, its runs and the runs that they called, all events byte for\n" +
			"byte, and the tools that were offered; tenon docs export describes the format. Markdown is\n" +
			"for reading: messages, with calls and results folded. The values of configured secrets are read\n" +
			"and masked in both. SESSION is an id, the beginning of one, or -1 for the last.",
		Example: "  tenon sessions export --out talk.md\n  tenon sessions export -1 > talk.json",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format == "" {
				format = exportJSON
				if ext := strings.ToLower(filepath.Ext(out)); ext == ".md" || ext == ".markdown" {
					format = exportMarkdown
				}
			}
			h, err := a.desk(cmd.Context(), opening{connect: true, reads: true}) // secrets may need programs
			if err != nil {
				return err
			}
			defer closing(h, &err)
			var b bytes.Buffer
			if format == exportMarkdown {
				err = h.Sessions().Transcripts().Export(cmd.Context(), &b, ref(args), host.FormatMarkdown)
			} else {
				err = h.Sessions().Transcripts().Export(cmd.Context(), &b, ref(args), host.FormatJSON)
			}
			switch {
			case err != nil:
				return err
			case out != "":
				return writeFile(out, b.Bytes())
			}
			return a.printText(b.String())
		},
	}
	cmd.Flags().Var(&enum{&format, []string{exportJSON, exportMarkdown}}, "format",
		"`FORM`: json or markdown (default: by the name of --out, else json)")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE`, readable only by you")
	return cmd
}
