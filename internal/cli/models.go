package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

func newModels(a *app) *cobra.Command {
	cmd := group("models", "Language models: keys, list, test, pull, prices", "model")
	cmd.AddCommand(newModelsLogin(a), newModelsLogout(a), newModelsList(a), newModelsTest(a), newModelsPull(a),
		newModelsPrices(a))
	return cmd
}

func newModelsList(a *app) *cobra.Command {
	var static bool
	var provider string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured and detected models",
		Long: "Lists the entries of models, the models of a provider whose key is in the environment, and the\n" +
			"models of local servers, with their kinds of input and the prices of a million tokens of prompt\n" +
			"and of answer. The default is used if a run names no model. No model is asked. --no-probe does\n" +
			"not look for local servers.\n\n" +
			"--provider asks a provider, or the server of an entry, which models it offers.",
		Example: "  tenon models list\n  tenon models list -o json\n  tenon models list --provider openrouter",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed("provider") {
				return a.listOffered(cmd.Context(), provider)
			}
			h, err := a.open(cmd.Context(), opening{looks: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Models().List(cmd.Context(), !static)
			if err != nil {
				return err
			}
			for i, m := range list {
				if m.From == host.FromEnvironment && a.keepsKey(m.Provider) {
					list[i].From, list[i].Where = host.FromKept, "tenon models login"
				}
			}
			a.unusedKeys(list)
			return printList(a, list, []string{"name", "provider", "model", "takes", "price", "from"},
				func(m host.ModelInfo) []string {
					from := m.From
					switch {
					case m.From == host.FromKept:
						from += " by " + m.Where
					case m.Where != "":
						from += " " + m.Where
					}
					if m.Default {
						from += " (default)"
					}
					return []string{m.Name, m.Provider, m.Model, strings.Join(m.Takes, " "), priceText(m.Price), from}
				})
		},
	}
	cmd.Flags().BoolVar(&static, "no-probe", false, "do not look for servers on this machine")
	cmd.Flags().StringVar(&provider, "provider", "", "ask this provider, or this entry of models, for its models")
	return cmd
}

// priceText formats a price as "$3/$15" or "free". It is empty if the price is not known.
func priceText(p *model.Price) string {
	switch {
	case p == nil:
		return ""
	case p.Input == 0 && p.Output == 0:
		return "free"
	}
	return perMillion(p.Input) + "/" + perMillion(p.Output)
}

func newModelsTest(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "test [NAME]",
		Short: "Test a model with one small request",
		Long: "Asks a model to call a tool and shows time, tokens and cost. Without NAME it asks the model that\n" +
			"a run would use, with --all every configured model. Nothing is retried. A failure is shown with\n" +
			"its kind (auth, quota, rate, overload, too_long, refused, malformed, cut_off, unreachable,\n" +
			"timeout) and a suggestion.",
		Example: "  tenon models test\n  tenon models test claude\n  tenon models test " +
			"groq/llama-3.3-70b-versatile -o json",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, names []string) error {
			if all && len(names) > 0 {
				return usage(cmd, "--all and NAME exclude each other")
			}
			return a.testModels(cmd.Context(), names, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "test every configured model, one after another")
	return cmd
}

func (a *app) testModels(ctx context.Context, names []string, all bool) (err error) {
	o := opening{connect: true}
	if len(names) == 0 && !all {
		o.asks = "test" // any question makes open look for a local model
	}
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	switch {
	case all:
		if names = h.Service().Info().Config.ModelNames(); len(names) == 0 {
			return tenon.Errorf(tenon.CodeNotFound, "there is no model to test: add one to models in tenon.yaml, or "+
				"name one, as in tenon models test anthropic/claude-sonnet-4-5")
		}
	case len(names) == 0:
		names = []string{""}
	}
	list := make([]host.ModelTest, 0, len(names))
	for _, name := range names {
		t, err := h.Models().Test(ctx, name)
		if err != nil {
			return err
		}
		list = append(list, t)
		if !a.isJSON() {
			if err := a.printModelTest(t); err != nil {
				return err
			}
		}
	}
	switch {
	case a.format == formatJSON && !all:
		err = a.printJSON(list[0])
	case a.isJSON():
		err = printList(a, list, nil, nil)
	}
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Error != nil {
			return reported{t.Error}
		}
	}
	return nil
}

// printModelTest shows one model that was tested.
func (a *app) printModelTest(t host.ModelTest) error {
	mark := a.outStyle(green, "✓")
	if !t.OK {
		mark = a.outStyle(red, "✗")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s  %s\n", mark, a.outStyle(bold, safeLine(t.Name)), a.outStyle(dim, safeLine(t.Model)))
	line := func(name, text string) {
		for i, l := range wrap(text, a.width()-13) {
			fmt.Fprintf(&b, "  %s %s\n", a.outStyle(dim, fmt.Sprintf("%-9s", []string{name, ""}[min(i, 1)])),
				safeLine(l))
		}
	}
	if !t.OK {
		line("error", string(t.Kind)+": "+t.Error.Message)
		line("do", t.Advice)
		return a.write([]byte(b.String()))
	}
	line("time", fmt.Sprintf("%s, first piece after %s", took(t.Millis), took(t.First)))
	switch {
	case t.Tool == nil:
		line("tools", "not offered (tool_mode: none)")
	case *t.Tool:
		line("tools", "called as asked")
	default:
		line("tools", "offered, but not called: it answered "+strconv.Quote(t.Answer))
	}
	tokens := "it does not say"
	if u := t.Usage; u != nil {
		tokens = fmt.Sprintf("%d read, %d written", u.Input, u.Output)
	}
	line("tokens", tokens)
	cost := "no price is known"
	if t.Cost != nil {
		cost = t.Cost.String()
	}
	line("cost", cost)
	return a.write([]byte(b.String()))
}

func newModelsPrices(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "prices",
		Short: "Print the built-in table of prices",
		Long: "Prints the built-in table of prices: US dollars for a million tokens of prompt, of answer, and read\n" +
			"from and written to a cache, and the prices of long prompts. -o json prints the file, as a template\n" +
			"for your own. The file that prices in tenon.yaml names overrides the built-in table model by model,\n" +
			"and models.NAME.price overrides both.",
		Example: "  tenon models prices\n  tenon models prices -o json > prices.json",
		Args:    args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.isJSON() {
				return a.write(model.BuiltinPriceFile())
			}
			return a.printPrices()
		},
	}
}

// printPrices prints the built-in prices by model.
func (a *app) printPrices() error {
	t, err := model.ParsePrices(model.BuiltinPriceFile())
	if err != nil {
		return err
	}
	cached := func(v *float64) string {
		if v == nil {
			return ""
		}
		return perMillion(*v)
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		p := t.Models[name]
		long := ""
		if p.Above != nil {
			long = fmt.Sprintf("%s/%s above %d tokens", perMillion(p.Above.Input), perMillion(p.Above.Output),
				p.Above.Tokens)
		}
		rows = append(rows, []string{name, perMillion(p.Input), perMillion(p.Output), cached(p.CacheRead),
			cached(p.CacheWrite), long})
	}
	a.note("US dollars per million tokens, as of %s; an estimate, not a bill", t.AsOf)
	return a.table([]string{"model", "input", "output", "cache read", "cache write", "long prompts"}, rows)
}

// perMillion formats the price of a million tokens.
func perMillion(v float64) string { return "$" + strconv.FormatFloat(v, 'f', -1, 64) }

// unusedKeys reports the keys that tenon keeps for providers of which no model is listed. A key alone does not select a
// model.
func (a *app) unusedKeys(list []host.ModelInfo) {
	for _, p := range host.KeyedProviders() {
		used := slices.ContainsFunc(list, func(m host.ModelInfo) bool { return m.Provider == p })
		if !used && a.modelKeys().Has(p) {
			a.note("a key of %s is kept, and no model uses it: add one to models, such as NAME: {provider: %s, "+
				"model: MODEL}", p, p)
		}
	}
}
