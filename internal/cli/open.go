package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
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

// opening describes the host that a verb needs.
type opening struct {
	adhoc   *adhoc         // the server of the command line
	servers []string       // servers whose tools are listed; if empty, all
	loaded  *config.Config // configuration to use instead of loading one
	live    bool           // refresh tool lists instead of using the cache
	reads   bool           // write nothing into the store, although connect is set
	connect bool           // the verb starts servers
	models  bool           // the verb asks models
	static  bool           // starts nothing, whether or not the project is trusted
	looks   bool           // only reads the configuration, so that the project need not be trusted
	lists   bool           // only shows what the store has; see listable
	asks    string         // the question; if it is set and no model is configured, a model is detected
	talks   bool           // a person at a terminal will ask more questions
	agent   string
	model   string
	cassette
	workflows map[string]host.Workflow // workflows of a table
	hidden    []string                 // servers that only these workflows may use
	set       func(*config.Config)     // changes the configuration before it is used
	begins    bool                     // do not wait long for servers that were never listed
	works     bool                     // takes runs from the cluster
	lasting   bool                     // the process is long-lived, such as tenon serve
	withheld  bool                     // withheld tools are shown; it is no error if all tools are withheld
}

// cassette names the folders that traffic is recorded to or replayed from.
type cassette struct {
	record, replay string
	resumed        bool // an earlier process began the cassette
}

func (c *cassette) flags(f *pflag.FlagSet) {
	f.StringVar(&c.record, "record", "", "record the traffic with models and servers to a cassette in `FOLDER`")
	f.StringVar(&c.replay, "replay", "", "answer for models and servers from the cassette in `FOLDER`; nothing is "+
		"started or contacted")
}

// check refuses empty and contradicting flags.
func (c *cassette) check(cmd *cobra.Command) error {
	if c.record != "" && c.replay != "" {
		return usage(cmd, "--record and --replay exclude each other")
	}
	for _, name := range []string{"record", "replay"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usage(cmd, "--%s is empty", name) // an unset shell variable must not lead to a live model
		}
	}
	return nil
}

// patience returns how long a list waits for a server that was never listed. A person at a terminal should not wait at
// all, and requests to a server should not fail only because they came in its first second.
func (o opening) patience() time.Duration {
	switch {
	case !o.begins:
		return 0
	case o.lasting:
		return 5 * time.Second
	}
	return 3 * time.Second
}

// open loads the configuration and opens a host on it. Without a configuration there are no servers, and the store is
// the user's.
func (a *app) open(ctx context.Context, o opening) (*host.Host, error) {
	cfg, err := a.hostConfig(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.replay == "" && (o.connect || o.models) && !cfg.Untrusted {
		cfg.Observe = a.collect(cfg.Config, o.lasting)
	}
	return host.Open(ctx, cfg)
}

// hostConfig loads the configuration and returns the host.Config for an opening.
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
	untrusted, err := a.gate(ctx, cfg, o)
	if err != nil {
		return none, err
	}
	if ((o.connect || o.models) && o.replay == "" || o.connect && !plays) && !untrusted {
		if err := a.agreeTables(ctx, cfg); err != nil {
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
		// With at most one server, tenon and the server take turns. A second processor would only wake up to find no
		// work.
		runtime.GOMAXPROCS(1)
	} else if a.program.Processors > 0 {
		runtime.GOMAXPROCS(a.program.Processors)
	}
	if o.asks != "" && o.model == "" {
		o.model = a.findModel(ctx, cfg, o)
		if o.model == host.DemoModel && o.connect {
			a.connectDemo(cfg, o)
		}
	}
	if o.lasting && a.serving && a.errTTY && o.model == "" {
		if _, found := host.DetectModel(ctx, a.lookupEnv, false); !found {
			a.connectDemo(cfg, o) // the page offers the script
		}
		a.addDemo(ctx, cfg)
	}
	a.found = o.model
	return host.Config{Config: cfg, Home: a.home, Untrusted: untrusted, Model: o.model, Record: o.record,
		Replay: o.replay, Resumed: o.resumed,
		LookupEnv: a.lookupEnv, Workflows: o.workflows, Hidden: o.hidden, Version: version().Version,
		Logger: a.logger(cfg), ShortLived: !o.lasting, ReadOnly: !o.connect && !o.models || o.reads,
		Patience: o.patience(), Cluster: a.program.Cluster, Worker: o.works,
		RefreshTools: o.live || o.adhoc.given(), Notify: a.notified(o),
		Interactive: a.canAsk() || a.wait || o.lasting, Slow: a.slow}, nil
}

// notified returns the function that receives the notifications of servers. It returns nil for a command that does not
// last, because only clients of the gateway need them.
func (a *app) notified(o opening) func(servers.Notification) {
	if !o.lasting {
		return nil
	}
	return func(n servers.Notification) {
		if g := a.mcp.Load(); g != nil {
			g.Notice(n)
		}
	}
}

// slow reports a server that takes long to start, and what it fetches or writes meanwhile.
func (a *app) slow(s servers.Starting) {
	switch {
	case s.Line != "":
		a.hint("starting %s: %s", s.Server, safeLine(s.Line))
	case s.Runner != "":
		a.hint("starting %s: %s; waiting up to %.0f s", s.Server, safeLine(s.String()), s.Limit.Seconds())
	default:
		a.hint("server '%s' is still starting (%s); waiting up to %.0f s", s.Server, safeLine(s.Target),
			s.Limit.Seconds())
	}
}

// scriptAnswers is the note of a command whose question the built-in script answers.
const scriptAnswers = "no model is configured and none was found: a built-in script answers"

// findModel detects a model if the configuration names none. If it finds none, the built-in script answers the demo's
// questions, so that the file of tenon init works without changes. In a conversation at a terminal the script answers
// all questions. For any other question findModel returns "", which leads to an error with instructions.
func (a *app) findModel(ctx context.Context, cfg *config.Config, o opening) string {
	if agent, err := cfg.Agent(o.agent); err != nil || agent.Model != "" {
		return ""
	}
	if found, ok := host.DetectModel(ctx, a.lookupEnv, true); ok {
		a.hint("model %s", found)
		return found
	}
	switch {
	case o.talks:
		q := demoQuestions
		a.scripted = fmt.Sprintf("%s %q, %q and %q", scriptAnswers, q[0], q[1], q[2])
		a.note("%s", a.scripted)
		return host.DemoModel
	case knownToDemo(o.asks):
		a.note("%s", scriptAnswers)
		return host.DemoModel
	}
	return ""
}

// load returns a configuration: for the command line's server if there is one, otherwise from the file. Without a file
// it is empty.
func (a *app) load(ctx context.Context, own *adhoc) (*config.Config, error) {
	if own.given() {
		return a.adhocConfig(ctx, own)
	}
	return a.loadWith(ctx, a.configOptions())
}

// loadWith loads the configuration file of some options.
func (a *app) loadWith(ctx context.Context, o config.Options) (*config.Config, error) {
	cfg, err := config.Load(ctx, o)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && a.config == "" {
		return &config.Config{}, nil
	}
	if err != nil {
		return nil, err
	}
	cfg.Found = cfg.Found || a.configFound
	a.warn(cfg)
	return cfg, nil
}

// warn prints the warnings of a configuration that it did not print for the previous one. Daily warnings are printed
// once a day.
func (a *app) warn(cfg *config.Config) {
	for _, w := range a.unseen(cfg) {
		if !slices.Contains(a.warned, w.Error()) {
			a.note("%s", w.Error())
		}
	}
	a.warned = nil
	for _, w := range cfg.Warnings {
		a.warned = append(a.warned, w.Error())
	}
}

func (a *app) configOptions() config.Options {
	return config.Options{File: a.config, Stdin: a.lines, LookupEnv: a.lookupEnv, Admin: a.admin.Admin,
		CheckOwner: a.admin.CheckOwner}
}

// logger returns a logger to stderr. The level is --log-level, or the configured level. The default of the
// configuration does not apply: it is warn, and info for tenon serve.
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
		_ = level.UnmarshalText([]byte(name)) // the flag and the configuration have been checked
	}
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(a.logs.to(a.err), o)
	if cfg.Telemetry.LogFormat == "json" {
		h = slog.NewJSONHandler(jsonLines{a.logs.to(beneath(a.err))}, o)
	}
	if !a.serving {
		h = &screenLog{Handler: h, a: a}
	}
	if !a.serving && level > slog.LevelDebug {
		h = &skipOnce{Handler: h, seen: newSeenRecords()}
	}
	return slog.New(h)
}

// closing closes a host or a table. It stores the error of Close in err unless err is already set.
func closing(c io.Closer, err *error) {
	*err = cmp.Or(*err, c.Close())
}

// problems prints one line for each server whose tools are missing.
func (a *app) problems(list []host.Problem) {
	for _, p := range list {
		a.note("%s", p.String())
	}
}

// news returns the problems that were not reported for the last question of a conversation, so that a missing server is
// not reported with each answer.
func (a *app) news(list []host.Problem) []host.Problem {
	var now []string
	var fresh []host.Problem
	for _, p := range list {
		text := p.String()
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

// adhoc is a server that is given on the command line instead of a configuration.
type adhoc struct {
	url, protocol, transport string
	urlGiven                 bool
	name                     string // in config
	headers                  []string
	command                  []string
	patience                 time.Duration // limit to connect; if 0, the default of configured servers
}

// flags adds the flags of the command line's server.
func (s *adhoc) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.url, "url", "", "`URL` of a server to use instead of the configured ones")
	f.StringArrayVar(&s.headers, "header", nil, "HTTP header `NAME:VALUE` for --url; may be repeated")
	f.Var(&enum{&s.transport, config.URLTransports()}, "transport", "`TRANSPORT` of the server at --url (default: "+
		"websocket for ws:// and wss://, else auto)")
	f.DurationVar(&s.patience, "connect-timeout", 0, "`TIME` limit for that server to start and answer (default: 10s; "+
		"2m for npx, uvx, docker and similar programs)")
	f.Var(&enum{&s.protocol, config.Protocols()}, "protocol", "protocol `REVISION` of that server (default: "+
		"negotiated)")
}

// split removes the command after -- from the arguments.
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
		return nil, usage(cmd, "--connect-timeout needs --url or a command behind --; for the configuration's "+
			"servers it is servers.NAME.timeout")
	case s.patience < 0:
		return nil, usage(cmd, "--connect-timeout must be positive")
	}
	return args, nil
}

func (s *adhoc) given() bool { return s != nil && (s.urlGiven || s.command != nil) }

// adhocConfig returns a configuration with only the server of the command line, and with the rules and limits of the
// user and the administrator.
func (a *app) adhocConfig(ctx context.Context, s *adhoc) (*config.Config, error) {
	cfg, err := config.Above(ctx, a.configOptions())
	if err != nil {
		return nil, err
	}
	return cfg, s.addTo(cfg)
}

// addTo adds the server to a configuration.
func (s *adhoc) addTo(cfg *config.Config) error {
	if s.urlGiven && strings.TrimSpace(s.url) == "" {
		return tenon.Errorf(tenon.CodeInvalid, "Server URL must not be empty")
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
			return tenon.Errorf(tenon.CodeInvalid, "'%s' is not the URL of a server: it must begin with %s:// "+
				"or %s://", s.url, schemes[0], schemes[1])
		}
		name = u.Hostname()
		if c.InferTransport() == servers.TransportHTTP && s.transport == "" {
			c.Transport = servers.TransportAuto // a person who names a URL need not know the transport
		}
		c.Headers = map[string]string{}
		for _, h := range s.headers {
			k, v, ok := strings.Cut(h, ":")
			if !ok || strings.TrimSpace(k) == "" {
				return tenon.Errorf(tenon.CodeInvalid, "--header '%s' is not of the form NAME:VALUE", h)
			}
			c.Headers[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	} else {
		name = config.CommandName(s.command)
		c.Command, c.Args = s.command[0], s.command[1:]
		dir, err := os.Getwd() // ./server names another program in another folder
		if err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the working directory is not known: %w", err)
		}
		c.Cwd = dir
	}
	s.name = name
	// Pins are off, because the person has just named this command or address.
	cfg.Policy.Pins.Changed = cmp.Or(cfg.Policy.Pins.Changed, policy.PinsOff)
	return cfg.AddServer(name, c, "")
}

// authRemedy replaces remedies for a configured server, because the server of --url has no entry.
func (s *adhoc) authRemedy(text string) string {
	const header = "pass its credentials with --header"
	text = strings.Replace(text, "check servers."+s.name+".auth", "check --header", 1)
	text = strings.Replace(text, "set servers."+s.name+".auth", header, 1)
	return strings.Replace(text, "sign in with 'tenon servers login "+s.name+"'",
		"add it with 'tenon servers add NAME URL' and sign in with 'tenon servers login NAME'", 1)
}

// connectError adapts an error of the command line's server. It names --connect-timeout and --transport instead of the
// configuration's keys, and the command line if a program is missing. A connection error is printed without a prefix,
// as other MCP tools print it.
func (s *adhoc) connectError(err error) error {
	if s.given() && tenon.ErrorCode(err) == tenon.CodeTimeout {
		text := strings.Replace(err.Error(), "servers."+s.name+".timeout", "--connect-timeout", 1)
		err = &tenon.Error{Code: tenon.CodeTimeout, Message: text, Err: err}
	}
	if s.given() && s.urlGiven && tenon.ErrorCode(err) == tenon.CodeProtocol {
		text := strings.Replace(err.Error(), "servers."+s.name+".transport: auto", "--transport auto", 1)
		err = &tenon.Error{Code: tenon.CodeProtocol, Message: text, Err: err}
	}
	if s.given() && s.urlGiven && tenon.ErrorCode(err) == tenon.CodeAuth {
		err = &tenon.Error{Code: tenon.CodeAuth, Message: s.authRemedy(err.Error()), Err: err}
	}
	if s.given() && errors.Is(err, exec.ErrNotFound) {
		text := strings.Replace(err.Error(), "correct servers."+s.name+".command", "correct the command behind --", 1)
		err = &tenon.Error{Code: tenon.ErrorCode(err), Message: text, Err: err}
	}
	if s.given() && strings.HasPrefix(err.Error(), "Failed to connect to MCP server") {
		return plain{err}
	}
	return err
}

// executable returns the path of this program, to start it again as a server.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the path of this program is not known: %w", err)
	}
	return exe, nil
}
