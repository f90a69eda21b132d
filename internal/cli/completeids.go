package cli

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

// Shell completion of ids and names, each with a short description. It offers stored and configured values: it asks no
// model, writes nothing, and starts no server, but for prompts and resources (see asks). Errors are not shown, since
// the person is typing a line.

const (
	offerTime = 2 * time.Second // Tab must not hang
	offerMost = 100
	offerText = 60 // characters of a description
)

// offer is one candidate.
type offer struct{ word, about string }

// offerer finds the candidates for one position.
type offerer func(ctx context.Context, k *known) ([]offer, error)

// known holds the sources of candidates. Each is opened at its first use.
type known struct {
	a     *app
	args  []string // the arguments before the word
	begun string   // the word so far
	cfg   *config.Config
	h     *host.Host

	goesOn bool // a candidate is only the beginning of a word
}

// config loads the configuration without showing its warnings.
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
	if k.h != nil {
		return k.h, nil
	}
	c, err := k.hostConfig(ctx)
	if err != nil {
		return nil, err
	}
	k.h, err = host.Open(ctx, c)
	return k.h, err
}

// hostConfig describes a host that reads the store. It fails if the project is not trusted or has no store.
func (k *known) hostConfig(ctx context.Context) (c host.Config, err error) {
	cfg, err := k.config(ctx)
	if err != nil {
		return c, err
	}
	if v, err := k.a.judgeTrust(ctx, cfg); err != nil || !v.Trusted() {
		return c, tenon.Errorf(tenon.CodeDenied, "the project is not trusted")
	}
	c = host.Config{Config: cfg, Home: k.a.home, LookupEnv: k.a.lookupEnv, Logger: slog.New(slog.DiscardHandler),
		ShortLived: true, ReadOnly: true}
	if !host.Stored(c) {
		return c, tenon.Errorf(tenon.CodeNotFound, "there is no store")
	}
	return c, nil
}

// positions maps the path of a command, without the program's name, to the offerers of its arguments. If there are
// several, the last one also serves all further arguments.
var positions = map[string][]offerer{
	"runs show": {someRuns(nil)}, "runs events": {someRuns(nil)}, "runs replay": {someRuns(nil)},
	"runs export": {someRuns(nil)},
	"runs follow": {someRuns(nil)}, "runs cancel": {someRuns(underWay)}, "runs steer": {someRuns(underWay)},
	"runs resume":   {someRuns(resumable)},
	"sessions show": {someSessions}, "sessions fork": {someSessions}, "sessions rename": {someSessions},
	"sessions compact": {someSessions},
	"sessions export":  {someSessions}, "sessions delete": {someSessions, someSessions},
	"approvals allow": {someApprovals}, "approvals deny": {someApprovals}, "approvals revoke": {someGrants},
	"servers test": {someServers}, "servers logs": {someServers}, "servers login": {someServers},
	"servers logout": {someServers},
	"servers get":    {someServers}, "servers remove": {someServers}, "servers enable": {someServers},
	"servers disable": {someServers}, "servers restart": {someServers},
	"tools show": {someTools}, "tools call": {someTools}, "tools remove": {ownTools}, "policy explain": {someTools},
	"tools pins": {someServers}, "tools pins diff": {someServers}, "tools pins accept": {someServers},
	"tools pins forget": {someServers},
	"prompts list":      {someServers}, "prompts get": {someServers, asks("/")}, "resources list": {someServers},
	"resources read": {someServers, asks("@")},
	"models test":    {someModels},
}

// values maps the names of flags to their offerers.
var values = map[string]offerer{
	"session": someSessions, "agent": someAgents, "model": someModels, "server": someServers,
	"tool-choice": func(ctx context.Context, k *known) ([]offer, error) {
		list, err := someTools(ctx, k)
		return append([]offer{{agent.ToolChoiceAuto, "the model decides"},
			{agent.ToolChoiceAny, "it must call a tool"}, {agent.ToolChoiceNone, "it must not"}}, list...), err
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

// offerIDs registers the completion of arguments and flags for a command and all its subcommands.
func (a *app) offerIDs(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if at, ok := positions[path]; ok {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
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
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string,
			begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.offered(cmd.Context(), from, nil, begun)
		}) // it fails only for a flag that does not exist
	}
	cmd.Flags().VisitAll(flags)
	cmd.PersistentFlags().VisitAll(flags)
	for _, c := range cmd.Commands() {
		a.offerIDs(c)
	}
}

// offered lists the candidates that begin with begun and are not among the arguments yet.
func (a *app) offered(ctx context.Context, from offerer, there []string, begun string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if a.remote != "" {
		return nil, only // the remote server has the ids, and completion does not ask it
	}
	ctx, cancel := context.WithTimeout(ctx, offerTime)
	defer cancel()
	k := &known{a: a, args: there, begun: begun}
	list, _ := from(ctx, k) // the command itself reports the error
	if k.h != nil {
		_ = k.h.Close()
	}
	var out []cobra.Completion
	for _, o := range list {
		// Candidates with blanks or hidden characters are not offered: a shell would split them, or a person not see
		// them.
		if strings.HasPrefix(o.word, begun) && !slices.Contains(there, o.word) && len(out) < offerMost &&
			o.word == safeLine(o.word) && !strings.ContainsAny(o.word, " \t\n") {
			out = append(out, cobra.CompletionWithDesc(o.word, shorten(safeLine(o.about), offerText)))
		}
	}
	if k.goesOn {
		return out, only | cobra.ShellCompDirectiveNoSpace
	}
	return out, only
}

func underWay(s tenon.RunState) bool  { return !s.Ended() }
func resumable(s tenon.RunState) bool { return s != tenon.RunCompleted && s != tenon.RunCancelled }

// someRuns offers the newest runs. If fits is not nil, it selects their states.
func someRuns(fits func(tenon.RunState) bool) offerer {
	return func(ctx context.Context, k *known) (out []offer, _ error) {
		h, err := k.host(ctx)
		if err != nil {
			return nil, err
		}
		list, err := h.Runs().List(ctx, engine.Filter{Limit: 10 * offerMost})
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
	list, err := h.Sessions().List(ctx, host.SessionFilter{Limit: 10 * offerMost})
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
	list, err := h.Approvals().List(ctx, "")
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
	list, err := h.Approvals().Grants(ctx, "")
	for _, g := range list {
		out = append(out, offer{g.ID, g.Tool() + ", allowed by " + g.By + ", " + k.a.when(g.Created)})
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

// someTools offers the tools that are cached, without asking a server.
func someTools(ctx context.Context, k *known) (out []offer, _ error) {
	h, err := k.host(ctx)
	if err != nil {
		return nil, err
	}
	known, err := h.Tools().Known(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range known.Tools() {
		out = append(out, offer{t.Name, about(t.Description)})
	}
	return out, nil
}

// ownTools offers the entries of tools in the configuration.
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
