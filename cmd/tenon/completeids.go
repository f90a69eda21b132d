package main

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// What the shell offers behind a verb: ids and names, each with a few words. Only what
// is known is offered: no server is started, no model asked, nothing written, and what
// is wrong is not told of in the middle of a line that somebody types.

const (
	offerTime = 2 * time.Second // Tab must not hang
	offerMost = 100
	offerText = 60 // characters of a description
)

// offer is one thing that may stand there.
type offer struct{ word, about string }

// offerer finds what may stand at a place.
type offerer func(ctx context.Context, k *known) ([]offer, error)

// known is what can be looked at, opened when it is needed.
type known struct {
	a   *app
	cfg *config.Config
	h   *host.Host
}

// config loads the configuration; warnings are not told of.
func (k *known) config(ctx context.Context) (_ *config.Config, err error) {
	if k.cfg == nil && k.a.config != "-" { // stdin is the shell's
		k.cfg, err = config.Load(ctx, k.a.configOptions())
	}
	if k.cfg == nil && err == nil {
		k.cfg = &config.Config{}
	}
	return k.cfg, err
}

// host opens the store, if there is one.
func (k *known) host(ctx context.Context) (*host.Host, error) {
	cfg, err := k.config(ctx)
	if err != nil || k.h != nil {
		return k.h, err
	}
	c := host.Config{Config: cfg, Home: k.a.home, LookupEnv: k.a.lookupEnv, Logger: slog.New(slog.DiscardHandler), Brief: true, Reading: true}
	if !host.Stored(c) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no store")
	}
	k.h, err = host.Open(ctx, c)
	return k.h, err
}

// positions are the offerers of a command's arguments, by its path without the program;
// the last one holds for all that follow where the command takes more.
var positions = map[string][]offerer{
	"runs show": {someRuns(nil)}, "runs events": {someRuns(nil)}, "runs replay": {someRuns(nil)}, "runs export": {someRuns(nil)},
	"runs follow": {someRuns(nil)}, "runs cancel": {someRuns(underWay)}, "runs steer": {someRuns(underWay)}, "runs resume": {someRuns(resumable)},
	"sessions show": {someSessions}, "sessions fork": {someSessions}, "sessions rename": {someSessions}, "sessions compact": {someSessions},
	"sessions export": {someSessions}, "sessions delete": {someSessions, someSessions},
	"approvals allow": {someApprovals}, "approvals deny": {someApprovals}, "approvals revoke": {someGrants},
	"servers test": {someServers}, "servers logs": {someServers}, "servers login": {someServers}, "servers logout": {someServers},
	"servers get": {someServers}, "servers remove": {someServers}, "servers enable": {someServers}, "servers disable": {someServers}, "servers restart": {someServers},
	"tools show": {someTools}, "tools call": {someTools}, "tools remove": {ownTools}, "policy explain": {someTools},
	"tools pins": {someServers}, "tools pins diff": {someServers}, "tools pins accept": {someServers}, "tools pins forget": {someServers},
	"prompts list": {someServers}, "prompts get": {someServers}, "resources list": {someServers}, "resources read": {someServers},
	"models test": {someModels},
}

// values are the offerers of flags, by their names.
var values = map[string]offerer{
	"session": someSessions, "agent": someAgents, "model": someModels, "server": someServers,
	"tool-choice": func(ctx context.Context, k *known) ([]offer, error) {
		list, err := someTools(ctx, k)
		return append([]offer{{agent.ToolChoiceAuto, "the model decides"}, {agent.ToolChoiceAny, "it must call a tool"}, {agent.ToolChoiceNone, "it must not"}}, list...), err
	},
	"mode":   words(agent.ModeNative, agent.ModeReact),
	"output": words(formatText, formatJSON, formatJSONL), "log-level": words("debug", "info", "warn", "error"),
}

func words(list ...string) offerer {
	return func(context.Context, *known) (out []offer, _ error) {
		for _, w := range list {
			out = append(out, offer{word: w})
		}
		return out, nil
	}
}

// offerIDs has all commands below one offer what may stand behind them.
func (a *app) offerIDs(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if at, ok := positions[path]; ok {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) >= len(at) && !(len(at) > 1) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.offered(cmd.Context(), at[min(len(args), len(at)-1)], args, begun)
		}
	}
	flags := func(f *pflag.Flag) {
		from, ok := values[f.Name]
		if _, there := cmd.GetFlagCompletionFunc(f.Name); !ok || there {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.offered(cmd.Context(), from, nil, begun)
		}) // the flag is there
	}
	cmd.Flags().VisitAll(flags)
	cmd.PersistentFlags().VisitAll(flags)
	for _, c := range cmd.Commands() {
		a.offerIDs(c)
	}
}

// offered lists what begins as the word does and does not stand there yet.
func (a *app) offered(ctx context.Context, from offerer, there []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if a.remote != "" {
		return nil, only // what there is, is elsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, offerTime)
	defer cancel()
	k := &known{a: a}
	list, _ := from(ctx, k) // what is wrong says the command itself
	if k.h != nil {
		_ = k.h.Close()
	}
	var out []cobra.Completion
	for _, o := range list {
		// What the shell would take for several words, or nobody would see, is not offered.
		if strings.HasPrefix(o.word, begun) && !slices.Contains(there, o.word) && len(out) < offerMost &&
			o.word == safeLine(o.word) && !strings.ContainsAny(o.word, " \t\n") {
			out = append(out, cobra.CompletionWithDesc(o.word, shorten(safeLine(o.about), offerText)))
		}
	}
	return out, only
}

func underWay(s tenon.RunState) bool  { return !s.Ended() }
func resumable(s tenon.RunState) bool { return s != tenon.RunCompleted && s != tenon.RunCancelled }

// someRuns are the newest runs, of any state or of those that fit.
func someRuns(fits func(tenon.RunState) bool) offerer {
	return func(ctx context.Context, k *known) (out []offer, _ error) {
		h, err := k.host(ctx)
		if err != nil {
			return nil, err
		}
		list, err := h.Runs(ctx, engine.Filter{Limit: 10 * offerMost})
		for _, r := range list {
			if fits == nil || fits(r.State) {
				out = append(out, offer{r.ID, string(r.State) + ", " + k.a.when(r.Updated) + ": " + r.Title})
			}
		}
		return out, err
	}
}

func someSessions(ctx context.Context, k *known) (out []offer, _ error) {
	h, err := k.host(ctx)
	if err != nil {
		return nil, err
	}
	list, err := h.Sessions(ctx, 10*offerMost)
	for _, s := range list {
		out = append(out, offer{s.ID, k.a.when(s.Updated) + ": " + s.Title})
	}
	return out, err
}

func someApprovals(ctx context.Context, k *known) (out []offer, _ error) {
	h, err := k.host(ctx)
	if err != nil {
		return nil, err
	}
	list, err := h.Approvals(ctx)
	for _, p := range list {
		about := p.Server + "." + p.Remote + " " + string(p.Arguments)
		if p.Kind == agent.AskLimit {
			about = p.Reason
		}
		out = append(out, offer{p.ID, about})
	}
	return out, err
}

func someGrants(ctx context.Context, k *known) (out []offer, _ error) {
	h, err := k.host(ctx)
	if err != nil {
		return nil, err
	}
	list, err := h.Grants(ctx, "")
	for _, g := range list {
		out = append(out, offer{g.Server + "." + g.Remote, "allowed by " + g.By + ", " + k.a.when(g.Created)})
	}
	return out, err
}

func someServers(ctx context.Context, k *known) (out []offer, _ error) {
	cfg, err := k.config(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		about := cmp.Or(s.URL, s.Command)
		if !s.IsEnabled() {
			about += " (not enabled)"
		}
		out = append(out, offer{name, about})
	}
	return out, nil
}

// someTools are the tools that are known without asking a server.
func someTools(ctx context.Context, k *known) (out []offer, _ error) {
	h, err := k.host(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range h.KnownTools(ctx).Tools() {
		out = append(out, offer{t.Name, about(t.Description)})
	}
	return out, nil
}

// ownTools are the entries of tools in the configuration.
func ownTools(ctx context.Context, k *known) (out []offer, _ error) {
	cfg, err := k.config(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools)) {
		out = append(out, offer{name, cfg.Tools[name].Description})
	}
	return out, nil
}

func someModels(ctx context.Context, k *known) (out []offer, _ error) {
	cfg, err := k.config(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range cfg.ModelNames() {
		m := cfg.Models[name]
		out = append(out, offer{name, m.Provider + "/" + cmp.Or(m.Model, m.Path)})
	}
	return append(out, offer{host.DemoModel, "the built-in script"}), nil
}

func someAgents(ctx context.Context, k *known) (out []offer, _ error) {
	cfg, err := k.config(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range cfg.AgentNames() {
		out = append(out, offer{name, cfg.Agents[name].Description})
	}
	return out, nil
}
