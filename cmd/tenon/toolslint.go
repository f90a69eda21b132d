package main

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
		Short: "Say what is wrong with tools before a model does",
		Long: "Looks at the tools as providers do: which cannot be sent and why, what is changed about a schema so that it is\n" +
			"taken (with its JSON pointer), names that clash, descriptions that are missing or long, and what the tools of each\n" +
			"server cost in tokens. Without --model every known provider is looked at: " + strings.Join(catalog.Providers(), ", ") + ".\n" +
			"It fails (status 1) where a tool cannot be sent.\n\n" + adhocHelp,
		Example: "  tenon tools lint --model openai/gpt-5\n  tenon tools lint -o json -- npx -y @modelcontextprotocol/server-everything",
		Args:    args(0, 0, ""),
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
	cmd.Flags().StringArrayVar(&models, "model", nil, "look as this model's provider does: `PROVIDER/NAME`, a provider, or an entry of models; may be repeated")
	return cmd
}

// lintProviders finds the rules that hold for models.
func lintProviders(h *host.Host, models []string) ([]string, error) {
	if len(models) == 0 {
		return catalog.Providers(), nil
	}
	var list []string
	for _, m := range models {
		provider, _, _ := strings.Cut(m, "/")
		if c, ok := h.Config().Models[m]; ok {
			provider = c.Provider
		}
		d := provider
		if !slices.Contains(catalog.Providers(), provider) {
			d = host.Dialect(provider)
		}
		if d == "" {
			return nil, tenon.Errorf(tenon.CodeNotFound, "there are no rules for the model '%s'%s", m, didYouMean(provider, catalog.Providers()))
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
		err = printListAs(a, found, []string{"level", "provider", "tool", "where", "what"}, func(f catalog.Finding) []string {
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
		a.hint("%s, about %s in each request; %s", plural(len(s.Tools()), "tool"), plural(total, "token"), plural(broken, "error"))
	}
	if broken > 0 {
		return reported{tenon.Errorf(tenon.CodeInternal, "%s", plural(broken, "error"))}
	}
	return nil
}
