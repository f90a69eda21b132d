package main

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/config"
)

func newConfigShow(a *app) *cobra.Command {
	var path string
	var redacted bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the values in effect and where each comes from",
		Long: "Shows the values of the configuration, defaults included, each with the file and line that says it. Secrets\n" +
			"are never shown; with --redacted neither are the values of variables and headers, and what is private in\n" +
			"addresses, so that the list can be given to others.",
		Example: "  tenon config show\n  tenon config show --path servers.demo.request_timeout",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Context(), a.configOptions())
			if err != nil {
				return err
			}
			values, err := cfg.Show(path)
			if err != nil {
				return err
			}
			if redacted {
				values = config.Redacted(values)
			}
			if !a.isJSON() && len(values) == 1 && values[0].Path == path {
				return a.printText(values[0].Value + " (" + values[0].Origin + ")")
			}
			return printList(a, values, []string{"path", "value", "origin"}, func(v config.Value) []string {
				return []string{v.Path, v.Value, v.Origin}
			})
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "only what is at or below this `KEY`, such as servers.demo")
	cmd.Flags().BoolVar(&redacted, "redacted", false, "hide what may be private beside secrets")
	return cmd
}
