package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/config"
)

func newConfigShow(a *app) *cobra.Command {
	var path string
	var redacted bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the effective values and their origins",
		Long: "Shows the values of the configuration, defaults included, each with the file and line that sets it.\n" +
			"Secrets are never shown. --redacted also hides the values of variables and headers and the private\n" +
			"parts of addresses, so that you can share the list.",
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
				where := values[0].Origin
				if values[0].Layer != "default" {
					where += ", " + values[0].Layer
				}
				return a.printText(values[0].Value + " (" + where + ")")
			}
			return printList(a, values, []string{"path", "value", "origin", "layer"}, func(v config.Value) []string {
				return []string{v.Path, v.Value, v.Origin, v.Layer}
			})
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "only values at or below this `KEY`, such as servers.demo")
	cmd.Flags().BoolVar(&redacted, "redacted", false, "also hide values that may be private")
	return cmd
}
