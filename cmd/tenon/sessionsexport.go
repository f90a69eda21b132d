package main

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
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
		Short: "Write a conversation to a file: all of it as JSON, or as Markdown to read",
		Long: "Writes a session, by default the last one. JSON holds everything: the session and those that it was forked from as\n" +
			"far as it goes on from them, runs and the runs that they called, all events byte for byte, the tools that were on\n" +
			"offer; docs/reference/export.md describes it. Markdown is for reading: what was said, with calls and results folded\n" +
			"away. The values of configured secrets are masked in both; for that they are read. SESSION is an id, the beginning\nof one, or -1 for the last.",
		Example: "  tenon sessions export --out talk.md\n  tenon sessions export -1 > talk.json",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if format == "" {
				format = exportJSON
				if ext := strings.ToLower(filepath.Ext(out)); ext == ".md" || ext == ".markdown" {
					format = exportMarkdown
				}
			}
			h, err := a.desk(cmd.Context(), opening{connect: true, reads: true}) // secrets may come from programs
			if err != nil {
				return err
			}
			defer closing(h, &err)
			var b bytes.Buffer
			if format == exportMarkdown {
				err = h.ExportMarkdown(cmd.Context(), &b, ref(args))
			} else {
				err = h.Export(cmd.Context(), &b, ref(args))
			}
			switch {
			case err != nil:
				return err
			case out != "":
				return writeFile(out, b.Bytes())
			case a.outTTY:
				return a.printText(b.String())
			}
			return a.write(b.Bytes())
		},
	}
	cmd.Flags().Var(&enum{&format, []string{exportJSON, exportMarkdown}}, "format", "`FORM`: json or markdown (default: by the name of --out, else json)")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE`, readable for you alone")
	return cmd
}
