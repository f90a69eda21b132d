package main

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/record"
	"github.com/tenonhq/tenon/servers"
)

// opening says what a verb needs of the host.
type opening struct {
	adhoc   *adhoc         // servers of the command line
	servers []string       // those whose tools are listed; none: all
	loaded  *config.Config // a configuration that is there already
	live    bool           // servers are asked for their tools, whatever is known of them
	reads   bool           // nothing is written into the store, although connect is set
	connect bool           // servers will be started: a configuration that was only found needs consent
	models  bool           // models will be asked, but no servers started: what reaches a model needs consent
	asks    string         // a question will be asked: where no model is configured, one is looked for
	talks   bool           // more will be asked by a person at a terminal
	agent   string
	model   string
	cassette
	workflows map[string]host.Workflow // of a table
	hidden    []string                 // servers that its workflows alone may use
	set       func(*config.Config)     // last changes to the configuration
	lasting   bool                     // the process stays: tenon serve
}

// cassette is where traffic is recorded to or replayed from.
type cassette struct {
	record, replay string
	resumed        bool // by a process after the one that began
}

func (c *cassette) flags(f *pflag.FlagSet) {
	f.StringVar(&c.record, "record", "", "write what goes to and comes from models and servers to a cassette in `FOLDER`")
	f.StringVar(&c.replay, "replay", "", "answer for models and servers from the cassette in `FOLDER`; nothing is started or reached")
}

// check refuses what cannot be.
func (c *cassette) check(cmd *cobra.Command) error {
	if c.record != "" && c.replay != "" {
		return usage(cmd, "--record and --replay exclude each other")
	}
	for _, name := range []string{"record", "replay"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usage(cmd, "--%s is empty", name) // a variable that is not set must not lead to a live model
		}
	}
	return nil
}

// open loads the configuration and opens a host on it. Without any
// configuration there are no servers, and the store is the user's.
func (a *app) open(ctx context.Context, o opening) (*host.Host, error) {
	cfg, err := a.hostConfig(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.replay == "" && (o.connect || o.models) { // else nobody agreed, and nothing is reached
		cfg.Observe = a.collect(cfg.Config, o.lasting)
	}
	return host.Open(ctx, cfg)
}

// hostConfig loads the configuration and says how a host is opened on it.
func (a *app) hostConfig(ctx context.Context, o opening) (host.Config, error) {
	none := host.Config{}
	cfg, err := o.loaded, error(nil)
	if cfg == nil {
		if cfg, err = a.load(ctx, o.adhoc); err != nil {
			return none, err
		}
	}
	plays := false
	if o.replay != "" {
		if plays, err = record.HoldsServers(o.replay); err != nil {
			return none, err
		}
	}
	if (o.connect || o.models) && o.replay == "" || o.connect && !plays {
		agreed := a.consent
		if !o.connect {
			agreed = a.consentToModels
		}
		if err := agreed(ctx, cfg); err != nil {
			return none, err
		}
		if err := a.askSecrets(ctx, cfg); err != nil {
			return none, err
		}
	}
	if o.set != nil {
		o.set(cfg)
	}
	if !o.lasting && len(cfg.Servers) <= 1 {
		// One thing is done after another, in our process or the server's: a second
		// processor would only be woken to find that there is nothing to do.
		runtime.GOMAXPROCS(1)
	}
	if o.asks != "" && o.model == "" {
		o.model = a.findModel(ctx, cfg, o)
	}
	return host.Config{Config: cfg, Home: a.home, Model: o.model, Record: o.record, Replay: o.replay, Resumed: o.resumed,
		LookupEnv: a.lookupEnv, Workflows: o.workflows, Hidden: o.hidden, Version: version().Version, Logger: a.logger(cfg), Brief: !o.lasting, Reading: !o.connect && !o.models || o.reads, Live: o.live || o.adhoc.given(),
		Attended: a.canAsk() || a.wait || o.lasting, Slow: a.slow}, nil
}

// slow tells whoever waits what for.
func (a *app) slow(server, target string, most time.Duration) {
	a.hint("server '%s' is still starting (%s); the first time it may have to be fetched; waiting up to %.0f s", server, target, most.Seconds())
}

// findModel looks for a model where the configuration names none. The questions
// that the demo knows are answered by its script, so that what tenon init wrote
// runs as it is; any other is an error that says how to connect a model, except in a
// conversation at a terminal, where the script says it.
func (a *app) findModel(ctx context.Context, cfg *config.Config, o opening) string {
	if agent, err := cfg.Agent(o.agent); err != nil || agent.Model != "" {
		return ""
	}
	if found, ok := host.DetectModel(ctx, a.lookupEnv, true); ok {
		a.hint("model %s", found)
		return found
	}
	const script = "no model is configured and none was found: a built-in script answers"
	switch {
	case o.talks:
		a.note("%s %q, %q and %q", script, demoQuestions[0], demoQuestions[1], demoQuestions[2])
		return host.DemoModel
	case slices.ContainsFunc(demoQuestions, func(q string) bool { return strings.EqualFold(strings.TrimSpace(o.asks), q) }):
		a.note("%s", script)
		return host.DemoModel
	}
	return ""
}

// load returns the configuration: that of the command line's own server, the
// file, or an empty one.
func (a *app) load(ctx context.Context, own *adhoc) (*config.Config, error) {
	if own.given() {
		return own.config()
	}
	return a.loadWith(ctx, a.configOptions())
}

// loadWith is load for some options.
func (a *app) loadWith(ctx context.Context, o config.Options) (*config.Config, error) {
	cfg, err := config.Load(ctx, o)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && a.config == "" {
		return &config.Config{}, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, w := range cfg.Warnings {
		if all = append(all, w.Error()); !slices.Contains(a.warned, w.Error()) {
			a.note("%s", w.Error())
		}
	}
	a.warned = all
	return cfg, nil
}

func (a *app) configOptions() config.Options {
	return config.Options{File: a.config, Stdin: a.lines, LookupEnv: a.lookupEnv}
}

// logger writes to stderr. The file's level counts only where the file says it:
// a command line is quiet by itself.
func (a *app) logger(cfg *config.Config) *slog.Logger {
	name := a.logLevel
	if name == "" && cfg.Origin("telemetry.log_level") != "default" {
		name = cfg.Telemetry.LogLevel
	}
	level := slog.LevelWarn
	if a.serving {
		level = slog.LevelInfo
	}
	if name != "" {
		_ = level.UnmarshalText([]byte(name)) // both are checked where they come in
	}
	o := &slog.HandlerOptions{Level: level}
	if cfg.Telemetry.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.err, o))
	}
	return slog.New(slog.NewTextHandler(a.err, o))
}

// closing closes a host, or a table, where the verb had no error of its own to tell.
func closing(c io.Closer, err *error) {
	if e := c.Close(); *err == nil {
		*err = e
	}
}

// problems tells of servers whose tools are missing, one line each.
func (a *app) problems(list []host.Problem) {
	for _, p := range list {
		a.note("%s", problemText(p))
	}
}

// news are the problems that were not there at the last question of a conversation: who
// talks for an hour need not read with each answer that a server is missing.
func (a *app) news(list []host.Problem) []host.Problem {
	var now []string
	var fresh []host.Problem
	for _, p := range list {
		text := problemText(p)
		now = append(now, text)
		if !slices.Contains(a.told, text) {
			fresh = append(fresh, p)
		}
	}
	if a.talking {
		a.told = now
	}
	return fresh
}

func problemText(p host.Problem) string {
	text := strings.ReplaceAll(p.Err.Error(), "\n", " ")
	if p.Server == "" || strings.Contains(text, "server '"+p.Server+"'") {
		return text
	}
	return "server '" + p.Server + "': " + text
}

// adhoc is one server that is given on the command line instead of a
// configuration.
type adhoc struct {
	url, protocol, transport string
	urlGiven                 bool
	name                     string // in config
	headers                  []string
	command                  []string
	patience                 time.Duration // to connect; 0: that of the configuration's servers
}

// flags adds the flags that give a server.
func (s *adhoc) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.url, "url", "", "`URL` of a server, in place of the configuration's")
	f.StringArrayVar(&s.headers, "header", nil, "HTTP header `NAME:VALUE` for --url; may be repeated")
	f.Var(&enum{&s.transport, config.URLTransports()}, "transport", "`TRANSPORT` of the server at --url (default: websocket for ws:// and wss://, else http)")
	f.DurationVar(&s.patience, "connect-timeout", 0, "`TIME` that server has to start and answer (default: 10s; 2m for npx, uvx, docker and the like)")
	f.Var(&enum{&s.protocol, config.Protocols()}, "protocol", "protocol `REVISION` of that server (default: found out)")
}

// split takes the command behind -- off the arguments.
func (s *adhoc) split(cmd *cobra.Command, args []string) ([]string, error) {
	s.urlGiven = cmd.Flags().Changed("url")
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, s.command = args[:dash], args[dash:]
		if len(s.command) == 0 || strings.TrimSpace(s.command[0]) == "" {
			return nil, usage(cmd, "there is no command behind --")
		}
	}
	switch {
	case s.urlGiven && s.command != nil:
		return nil, usage(cmd, "a server is given by --url or by a command behind --, not both")
	case !s.urlGiven && len(s.headers) > 0:
		return nil, usage(cmd, "--header needs --url")
	case !s.urlGiven && s.transport != "":
		return nil, usage(cmd, "--transport needs --url")
	case !s.given() && s.protocol != "":
		return nil, usage(cmd, "--protocol needs --url or a command behind --")
	case !s.given() && s.patience != 0:
		return nil, usage(cmd, "--connect-timeout needs --url or a command behind --; for the configuration's servers it is servers.NAME.timeout")
	case s.patience < 0:
		return nil, usage(cmd, "--connect-timeout must be positive")
	}
	return args, nil
}

func (s *adhoc) given() bool { return s != nil && (s.urlGiven || s.command != nil) }

// config makes the configuration that has only this server.
func (s *adhoc) config() (*config.Config, error) {
	if s.urlGiven && strings.TrimSpace(s.url) == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "Server URL must not be empty")
	}
	c := servers.Config{URL: s.url, Protocol: s.protocol, Transport: s.transport, Timeout: s.patience}
	name := ""
	if s.urlGiven {
		u, err := url.Parse(s.url)
		schemes := []string{"http", "https"}
		if c.InferTransport() == servers.TransportWebSocket {
			schemes = []string{"ws", "wss"}
		}
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' is not the URL of a server: it must begin with %s:// or %s://", s.url, schemes[0], schemes[1])
		}
		name = u.Hostname()
		c.Headers = map[string]string{}
		for _, h := range s.headers {
			k, v, ok := strings.Cut(h, ":")
			if !ok || strings.TrimSpace(k) == "" {
				return nil, tenon.Errorf(tenon.CodeInvalid, "--header '%s' is not of the form NAME:VALUE", h)
			}
			c.Headers[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	} else {
		name = config.CommandName(s.command)
		c.Command, c.Args = s.command[0], s.command[1:]
	}
	s.name = name
	// Whoever names a command or an address means what it is now.
	return &config.Config{Servers: map[string]servers.Config{name: c.WithDefaults()}, Policy: policy.Config{Pins: policy.PinsOff}}, nil
}

// connectError lets the message about the command line's own server stand alone,
// as other MCP tools print it, and name what can be said there.
func (s *adhoc) connectError(err error) error {
	if s.given() && tenon.ErrorCode(err) == tenon.CodeTimeout {
		text := strings.Replace(err.Error(), "servers."+s.name+".timeout", "--connect-timeout", 1)
		err = &tenon.Error{Code: tenon.CodeTimeout, Message: text, Err: err}
	}
	if s.given() && strings.HasPrefix(err.Error(), "Failed to connect to MCP server") {
		return plain{err}
	}
	return err
}

// executable is the path of this program, for servers that it starts of itself.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the path of this program is not known: %w", err)
	}
	return exe, nil
}
