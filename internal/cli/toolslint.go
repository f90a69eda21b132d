package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
)

func newToolsLint(a *app) *cobra.Command {
	s := &adhoc{}
	var models []string
	cmd := &cobra.Command{
		Use:   "lint [--model PROVIDER/NAME] [--url URL | -- COMMAND ARGS...]",
		Short: "Check tools against the rules of model providers",
		Long: "Checks tools against the rules of providers. It shows tools that cannot be sent and why, changes to\n" +
			"schemas (with their JSON pointers), clashing names, missing or long descriptions, and the tokens of\n" +
			"each server's tools. Without --model it checks every known provider: " +
			strings.Join(catalog.Providers(), ", ") + ".\n" +
			"Fails with status 1 if a tool cannot be sent.\n\n" + adhocHelp,
		Example: "  tenon tools lint --model openai/gpt-5\n  tenon tools lint -o json -- npx -y " +
			"@modelcontextprotocol/server-everything",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := s.split(cmd, args); err != nil {
				return err
			}
			h, err := a.open(cmd.Context(), opening{adhoc: s, connect: true, live: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			providers, err := lintProviders(h, models)
			if err != nil {
				return err
			}
			snapshot, err := a.tools(cmd.Context(), h, s)
			if err != nil {
				return err
			}
			return a.lint(snapshot, providers)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringArrayVar(&models, "model", nil, "use the rules of this model's provider: `PROVIDER/NAME`, a "+
		"provider, or an entry of models; may be repeated")
	return cmd
}

// lintProviders returns the providers whose rules apply to the models.
func lintProviders(h *host.Host, models []string) ([]string, error) {
	if len(models) == 0 {
		return catalog.Providers(), nil
	}
	var list []string
	for _, m := range models {
		provider, _, _ := strings.Cut(m, "/")
		if c, ok := h.Service().Info().Config.Models[m]; ok {
			provider = c.Provider
		}
		d := provider
		if !slices.Contains(catalog.Providers(), provider) {
			d = host.Dialect(provider)
		}
		if d == "" {
			return nil, tenon.Errorf(tenon.CodeNotFound, "there are no rules for the model '%s'%s", m,
				didYouMean(provider, catalog.Providers()))
		}
		list = append(list, d)
	}
	return list, nil
}

func (a *app) lint(s *catalog.Snapshot, providers []string) error {
	found := s.Lint(providers)
	total, broken := 0, 0
	for _, b := range s.Bills() {
		total += b.Tokens
	}
	for _, f := range found {
		if f.Level == catalog.LevelError {
			broken++
		}
	}
	var err error
	if a.format == formatJSON {
		err = a.printJSON(map[string]any{"findings": found, "servers": s.Bills(), "total": total})
	} else {
		err = printListAs(a, found, []string{"level", "provider", "tool", "where", "what"},
			func(f catalog.Finding) []string {
				return []string{f.Level, f.Provider, strings.Trim(f.Server+"."+f.Tool, "."), f.Pointer, f.Message}
			}, a.wrapped)
	}
	if err != nil {
		return err
	}
	if !a.isJSON() {
		for _, b := range s.Bills() {
			a.hint("%s: %s, about %s", b.Server, plural(b.Tools, "tool"), plural(b.Tokens, "token"))
		}
		a.hint("%s, about %s in each request; %s", plural(len(s.Tools()), "tool"), plural(total, "token"),
			plural(broken, "error"))
	}
	if broken > 0 {
		return reported{tenon.Errorf(tenon.CodeInternal, "%s", plural(broken, "error"))}
	}
	return nil
}
