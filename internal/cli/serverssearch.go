package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers/registry"
)

func newServersSearch(a *app) *cobra.Command {
	var address string
	limit := 20
	cmd := &cobra.Command{
		Use:   "search [WORD]",
		Short: "Search a registry of MCP servers",
		Long: "Searches the registry of registry.url for servers with WORD in their name, and shows the command\n" +
			"that adds each one. Nothing is added or started. The texts come from the authors of the servers:\n" +
			"check a server before you add it.",
		Example: "  tenon servers search github\n  tenon servers search --registry https://registry.example.com " +
			"postgres -o json",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return usage(cmd, "--limit must be from 1 to 1000")
			}
			ctx := cmd.Context()
			cfg, err := a.load(ctx, nil)
			if err != nil {
				return err
			}
			search := registry.Config{URL: cmp.Or(address, cfg.Registry.URL), UserAgent: "tenon/" + version().Version}
			if address == "" && cfg.Registry.URL != "" {
				if err := a.requireTrust(ctx, cfg); err != nil {
					return err
				}
				if search.Token, err = cfg.RegistryToken(ctx); err != nil {
					return err
				}
			}
			list, more, err := registry.Search(ctx, search, strings.Join(args, " "), limit)
			if err != nil {
				return err
			}
			if more {
				a.note("there are more; --limit shows them")
			}
			return a.printRegistry(list, cfg)
		},
	}
	cmd.Flags().StringVar(&address, "registry", "", "`URL` of another registry than the configuration's")
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many `SERVERS`")
	return cmd
}

// printRegistry prints the results of a registry. On a terminal the whole command line is visible. A server that is
// already configured is shown with its name there.
func (a *app) printRegistry(list []registry.Server, cfg *config.Config) error {
	for i := range list {
		for _, name := range cfg.AllServerNames() {
			if cfg.Servers[name].RegistryName == list[i].Name {
				list[i].Configured = append(list[i].Configured, name)
			}
		}
	}
	row := func(s registry.Server) []string {
		add := "(cannot be run from here)"
		if s.Add != nil {
			add = shellLine(s.Add)
		}
		if s.Configured != nil {
			add = "(configured as " + strings.Join(s.Configured, ", ") + ")"
		}
		if s.Status != "" && s.Status != "active" {
			add = "(" + s.Status + ") " + add
		}
		return []string{tenon.Visible(s.Name), tenon.Visible(s.Version), tenon.Visible(s.Description),
			tenon.Visible(add)}
	}
	if a.isJSON() || !a.outTTY {
		return printList(a, list, []string{"name", "version", "description", "add"}, row)
	}
	var b strings.Builder
	for _, s := range list {
		r := row(s)
		fmt.Fprintf(&b, "%s %s\n", a.outStyle(bold, safeLine(r[0])), a.outStyle(dim, safeLine(r[1])))
		for _, l := range wrap(r[2], a.width()-4) {
			fmt.Fprintf(&b, "  %s\n", safeLine(l))
		}
		fmt.Fprintf(&b, "  %s\n", a.outStyle(cyan, safeLine(r[3])))
	}
	if len(list) == 0 {
		a.note("none")
	}
	return a.write([]byte(b.String()))
}
