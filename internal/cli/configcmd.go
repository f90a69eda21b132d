package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

func newConfig(a *app) *cobra.Command {
	cmd := group("config", "The configuration: validate, show, import, export, schema")
	cmd.AddCommand(newConfigValidate(a), newConfigShow(a), newConfigImport(a), newConfigExport(a), newConfigSchema(a))
	return cmd
}

func newConfigValidate(a *app) *cobra.Command {
	var connect bool
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the configuration and list all errors",
		Long: "Checks the configuration without starting or contacting anything. All errors are shown at once, each\n" +
			"with file, line and column. With --connect it also connects to the servers.",
		Example: "  tenon config validate\n  tenon config validate other.yaml\n  tenon config validate -c - < " +
			"tenon.yaml",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				if a.config != "" {
					return usage(cmd, "the file is given twice: %s and %s", a.config, args[0])
				}
				a.config = args[0]
			}
			cfg, err := config.Load(cmd.Context(), a.configOptions())
			if err != nil {
				return err
			}
			for _, w := range cfg.Warnings {
				a.note("%s", w.Error())
			}
			if cfg.IsEmpty() {
				a.note("warning: %s has no servers, models or agents; tenon init in an empty folder writes a first "+
					"configuration", cfg.File)
			}
			if a.trust { // every command accepts --trust
				if err := a.requireTrust(cmd.Context(), cfg); err != nil {
					return err
				}
			}
			if connect {
				if err := a.tryServers(cmd, cfg); err != nil {
					return err
				}
			}
			return a.did(map[string]any{"file": cfg.File, "valid": true, "warnings": append(config.Errors{},
				cfg.Warnings...)},
				"%s is valid: %s", cfg.File, sizes(cfg))
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "also connect to the servers")
	return cmd
}

// sizes counts the entries of a configuration.
func sizes(cfg *config.Config) string {
	text := plural(len(cfg.Servers), "server") + ", " + plural(len(cfg.Models), "model") + ", " +
		plural(len(cfg.Agents), "agent")
	if n := len(cfg.ToolTables); n > 0 {
		text += ", " + plural(n, "tool table")
	}
	return text
}

func (a *app) tryServers(cmd *cobra.Command, cfg *config.Config) (err error) {
	h, err := a.open(cmd.Context(), opening{connect: true, live: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	_, problems, err := h.Tools().Snapshot(cmd.Context())
	if err != nil || len(problems) == 0 {
		return err
	}
	a.problems(problems)
	// Errors in the file decide the status before servers that cannot be reached.
	wrong := 0
	for _, p := range problems {
		if p.Server == "" {
			wrong++
		}
	}
	if wrong > 0 {
		return tenon.Errorf(tenon.CodeConfig, "%s in %s about the tools of its servers", plural(wrong, "mistake"),
			cfg.File)
	}
	return tenon.Errorf(tenon.ErrorCode(problems[0].Err), "%s of %s cannot be used", plural(len(problems), "server"),
		cfg.File)
}

func newConfigSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of tenon.yaml",
		Long:    "Prints the JSON Schema (draft 2020-12) of tenon.yaml, for editors and checkers.",
		Example: "  tenon config schema > tenon.schema.json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			return a.write([]byte(strings.TrimRight(string(config.Schema()), "\n") + "\n"))
		},
	}
}
