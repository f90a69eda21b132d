package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// The results of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
	checkSkip = "skip"
)

// check is one thing that the doctor looked at.
type check httpapi.Check

// failed makes a check that failed of an error.
func (c check) failed(err error, remedy string) check {
	c.Status, c.Text, c.Code, c.Remedy = checkFail, err.Error(), errorCode(err), remedy
	return c
}

// doctorParallel bounds how many servers and models are tried at a time.
const doctorParallel = 8

func newDoctor(a *app) *cobra.Command {
	var only []string
	var models bool
	patience := doctorPatience
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that a run needs, and say what to do where it does not work",
		Long: "Checks the configuration, the programs that it starts, the store, each server and each model that is in use, and says\n" +
			"for each problem what to do. A server is connected as a run would: each step on the way to it (dns, tcp, tls, start,\n" +
			"discover, initialize, list) is shown with its time. A model is not asked anything, unless --ask-models says so; its\n" +
			"key and the way to it are checked. Tools are looked at as a model would get them. The exit status is 2 where the\n" +
			"configuration is wrong, 1 where anything else is; warnings do not count.",
		Example: "  tenon doctor\n  tenon doctor --server github\n  tenon doctor -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return usage(cmd, "--timeout must be positive")
			}
			d := &doctor{app: a, only: only, askModels: models, patience: patience}
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVar(&only, "server", nil, "only this `SERVER`, and what it needs; may be repeated")
	cmd.Flags().BoolVar(&models, "ask-models", false, "make one small request to each model, which may cost money")
	cmd.Flags().DurationVar(&patience, "timeout", patience, "`TIME` for each server and model")
	return cmd
}

// doctor is one examination.
type doctor struct {
	*app
	only      []string
	askModels bool
	patience  time.Duration
	checks    []check
}

func (d *doctor) run(ctx context.Context) (err error) {
	cfg, ok := d.configuration(ctx)
	if !ok {
		for _, area := range []string{"store", "server", "model"} {
			d.add(check{Area: area, Status: checkSkip, Text: "not looked at before the configuration is right"})
		}
		return d.report()
	}
	for _, name := range d.only {
		if _, there := cfg.Servers[name]; !there {
			return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name, didYouMean(name, cfg.ServerNames()))
		}
	}
	d.programs(cfg)
	h, err := d.open(ctx, opening{connect: true, live: true})
	if code := tenon.ErrorCode(err); code == tenon.CodeWaiting || code == tenon.CodeDenied || code == tenon.CodeCancelled {
		return err // nobody agreed
	}
	if err != nil {
		d.add(check{Area: "store"}.failed(err, "")) // the error says what to do
		return d.report()
	}
	defer closing(h, &err)
	d.host(ctx, h)
	return d.report()
}

// host looks at all that an open host has.
func (d *doctor) host(ctx context.Context, h *host.Host) {
	d.store(ctx, h)
	d.together(ctx, d.servers(h), d.models(h))
	d.tools(ctx, h)
}

// doctor looks at what the runs of a host at work need, for a page that shows it.
func (s *server) doctor(h *host.Host) func(ctx context.Context, only []string) ([]httpapi.Check, error) {
	return func(ctx context.Context, only []string) ([]httpapi.Check, error) {
		d := &doctor{app: s.a, only: only, patience: doctorPatience}
		if len(only) == 0 {
			d.configuration(ctx) // as the file is by now: one that is broken is not in use
		}
		d.programs(h.Config())
		d.host(ctx, h)
		list := make([]httpapi.Check, len(d.checks))
		for i, c := range d.checks {
			list[i] = httpapi.Check(c)
		}
		return list, ctx.Err()
	}
}

// doctorPatience is the time for each server and model.
const doctorPatience = 30 * time.Second

func (d *doctor) add(c check) { d.checks = append(d.checks, c) }

// configuration loads the configuration and says what it is.
func (d *doctor) configuration(ctx context.Context) (*config.Config, bool) {
	c := check{Area: "config", Status: checkOK}
	start := time.Now()
	cfg, err := config.Load(ctx, d.configOptions())
	c.Millis = time.Since(start).Milliseconds()
	if tenon.ErrorCode(err) == tenon.CodeNotFound && d.config == "" {
		c.Status, c.Text, c.Remedy = checkWarn, "there is none here", "tenon init writes one"
		d.add(c)
		return &config.Config{}, true
	}
	if err != nil {
		d.add(c.failed(err, "mend what it names; tenon config validate checks it again"))
		return nil, false
	}
	c.Name = cfg.File
	c.Text = sizes(cfg)
	d.add(c)
	for _, w := range cfg.Warnings {
		d.add(check{Area: "config", Name: cfg.File, Status: checkWarn, Text: w.Error()})
	}
	return cfg, true
}

// installers say where programs come from that many servers are started with.
var installers = map[string]string{
	"npx": "install Node.js: https://nodejs.org", "node": "install Node.js: https://nodejs.org", "uvx": "install uv: https://docs.astral.sh/uv",
	"uv": "install uv: https://docs.astral.sh/uv", "docker": "install Docker: https://docs.docker.com/get-docker", "python": "install Python: https://www.python.org",
	"python3": "install Python: https://www.python.org", "bunx": "install Bun: https://bun.sh", "deno": "install Deno: https://deno.com",
}

// programs looks for what servers are started with.
func (d *doctor) programs(cfg *config.Config) {
	users := map[string][]string{}
	var order []string
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		if s.InferTransport() != servers.TransportStdio || !d.wanted(name) {
			continue
		}
		program := s.Command
		if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
			program = filepath.Join(s.Cwd, program)
		}
		if users[program] == nil {
			order = append(order, program)
		}
		users[program] = append(users[program], name)
	}
	for _, program := range order {
		c := check{Area: "program", Name: program, Status: checkOK}
		start := time.Now()
		path, err := exec.LookPath(program)
		c.Millis = time.Since(start).Milliseconds()
		if err != nil {
			text := fmt.Errorf("it is not in PATH; %s cannot be started", strings.Join(users[program], ", "))
			if strings.ContainsRune(program, filepath.Separator) {
				text = fmt.Errorf("it is not there or cannot be run; %s cannot be started", strings.Join(users[program], ", "))
			}
			remedy := cmp.Or(installers[filepath.Base(program)], "install it, or write its path into servers."+users[program][0]+".command")
			d.add(c.failed(&tenon.Error{Code: tenon.CodeUnreachable, Message: text.Error(), Err: err}, remedy))
			continue
		}
		c.Text = path
		d.add(c)
	}
}

func (d *doctor) wanted(server string) bool {
	return len(d.only) == 0 || slices.Contains(d.only, server)
}

// store looks at the store that was opened.
func (d *doctor) store(ctx context.Context, h *host.Host) {
	folder := filepath.Dir(h.Socket())
	c := check{Area: "store", Name: folder, Status: checkOK}
	start := time.Now()
	sessions, err := h.Sessions(ctx, 1)
	c.Millis = time.Since(start).Milliseconds()
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, "doctor-*"); err == nil {
			_ = probe.Close()
			err = os.Remove(probe.Name())
		}
		if err != nil {
			err = tenon.Errorf(tenon.CodeStore, "its folder cannot be written: %w", err)
		}
	}
	if err != nil {
		d.add(c.failed(err, "see that the disk has room and the folder is yours, or name another one with --home"))
		return
	}
	c.Text = "can be read and written"
	if len(sessions) == 0 {
		c.Text += "; no session yet"
	}
	d.add(c)
}

// job is a check that takes its time.
type job func(ctx context.Context) check

// together runs jobs, a few at a time, and adds what they found in their order.
func (d *doctor) together(ctx context.Context, lists ...[]job) {
	jobs := slices.Concat(lists...)
	found := make([]check, len(jobs))
	slots := make(chan struct{}, doctorParallel)
	var wg sync.WaitGroup
	for i, do := range jobs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, d.patience)
			defer cancel()
			start := time.Now()
			found[i] = do(ctx)
			found[i].Millis = time.Since(start).Milliseconds()
		})
	}
	wg.Wait()
	d.checks = append(d.checks, found...)
}

// servers makes a job for each server.
func (d *doctor) servers(h *host.Host) []job {
	var jobs []job
	for _, name := range serverNames(h) {
		if !d.wanted(name) {
			continue
		}
		jobs = append(jobs, func(ctx context.Context) check { return d.server(ctx, h, name) })
	}
	return jobs
}

// server goes the way to one server: the network first, so that what is in the way
// is named, then the protocol.
func (d *doctor) server(ctx context.Context, h *host.Host, name string) check {
	c := check{Area: "server", Name: name, Status: checkOK}
	cfg := h.Config().Servers[name]
	remote := cfg.InferTransport() != servers.TransportStdio
	if remote {
		phases, err := servers.Reach(ctx, cfg.URL)
		c.Phases = phases
		var u *servers.Unreached
		if errors.As(err, &u) {
			return c.failed(&tenon.Error{Code: tenon.CodeUnreachable, Message: u.Text, Err: err}, u.Remedy)
		}
	}
	tools, err := h.Servers()[name].List(ctx)
	if err == nil && !cfg.LoadsTools() {
		err = h.Servers()[name].Connect(ctx)
	}
	st := h.Servers()[name].Status()
	c.Phases = append(c.Phases, st.Phases...)
	if err != nil {
		if st.Error != nil {
			err = st.Error
		}
		return c.failed(err, serverRemedy(name, cfg, tenon.ErrorCode(err)))
	}
	has := plural(len(tools), "tool")
	if !cfg.LoadsTools() {
		has = "its tools are those that the configuration names"
	}
	c.Text = fmt.Sprintf("%s over %s, protocol %s, %s", cmp.Or(st.Server, "it does not say its name"), serverInfo{Status: st}.over(), st.Protocol, has)
	if st.Deprecated {
		c.Status, c.Remedy = checkWarn, "the protocol advises against HTTP+SSE; see whether the server has an address for transport http"
	}
	return c
}

func serverRemedy(name string, cfg servers.Config, code tenon.Code) string {
	logs := "see what it said: tenon servers logs " + name
	switch code {
	case tenon.CodeAuth:
		if cfg.Auth.Type == "" || cfg.Auth.Type == servers.AuthNone || cfg.Auth.Type == servers.AuthOAuth {
			return "sign in: tenon servers login " + name
		}
		return "check the secret of servers." + name + ".auth"
	case tenon.CodeTimeout:
		return "raise servers." + name + ".timeout if it is slow to start; " + logs
	case tenon.CodeProtocol:
		if cfg.InferTransport() != servers.TransportStdio {
			return "check the path in the URL, and try transport: auto; " + logs
		}
		return "check that the command is an MCP server; " + logs
	case tenon.CodeRateLimited:
		return "try again later"
	}
	return logs
}

// models makes a job for each model that is in use.
func (d *doctor) models(h *host.Host) []job {
	if len(d.only) > 0 {
		return nil
	}
	var jobs []job
	cfg := h.Config()
	for _, name := range cfg.ModelNames() {
		jobs = append(jobs, func(ctx context.Context) check { return d.model(ctx, h, name) })
	}
	if len(jobs) == 0 {
		jobs = append(jobs, func(ctx context.Context) check {
			c := check{Area: "model", Status: checkOK}
			if found, ok := host.DetectModel(ctx, d.lookupEnv, true); ok {
				c.Name, c.Text = found, "found in the environment"
				return c
			}
			c.Status, c.Text, c.Remedy = checkWarn, "none is configured and none was found", "set a provider's key, such as ANTHROPIC_API_KEY, or add one to models"
			return c
		})
	}
	return jobs
}

func (d *doctor) model(ctx context.Context, h *host.Host, name string) check {
	c := check{Area: "model", Name: name, Status: checkOK}
	m, err := h.Config().Model(ctx, name)
	if err != nil {
		return c.failed(err, "set it, or change models."+name+".api_key")
	}
	p, _ := model.Lookup(m.Provider)
	if m.Provider == "script" {
		c.Text = "answers from " + m.Path
		if _, err := os.Stat(m.Path); err != nil {
			return c.failed(tenon.Errorf(tenon.CodeNotFound, "%w", err), "write the file, or change models."+name+".path")
		}
		return c
	}
	if p.KeyEnv != "" && m.BaseURL == p.BaseURL && m.APIKey.IsZero() {
		return c.failed(tenon.Errorf(tenon.CodeAuth, "there is no key for %s", m.Provider), "set "+p.KeyEnv+", or write models."+name+".api_key")
	}
	phases, err := servers.Reach(ctx, m.BaseURL)
	c.Phases = phases
	var u *servers.Unreached
	if errors.As(err, &u) {
		return c.failed(&tenon.Error{Code: tenon.CodeUnreachable, Message: u.Text, Err: err}, u.Remedy)
	}
	c.Text = fmt.Sprintf("%s %s can be reached", m.Provider, m.Model)
	if !d.askModels {
		return c
	}
	t, err := h.TestModel(ctx, name)
	switch {
	case err != nil:
		return c.failed(err, "")
	case t.Error != nil:
		return c.failed(t.Error, t.Advice)
	}
	c.Text = fmt.Sprintf("%s %s answered in %s", m.Provider, cmp.Or(t.Model, m.Model), took(t.Millis))
	if t.Tool != nil && !*t.Tool {
		c.Status, c.Remedy = checkWarn, "it was asked to call a tool and did not; tool_mode: react may help"
	}
	return c
}

// report prints what was found. Where something is wrong the status is 1, that of a
// configuration which cannot be loaded its own; each check says the code of its error.
func (d *doctor) report() error {
	var bad *check
	for i, c := range d.checks {
		if c.Status == checkFail && bad == nil {
			bad = &d.checks[i]
		}
	}
	var err error
	switch d.format {
	case formatJSON:
		err = d.printJSON(map[string]any{"ok": bad == nil, "checks": d.checks})
	case formatJSONL:
		err = printList(d.app, d.checks, nil, nil)
	default:
		for _, c := range d.checks {
			if err = d.print(c); err != nil {
				break
			}
		}
	}
	if err != nil || bad == nil {
		return err
	}
	code := tenon.CodeInternal
	if bad.Area == "config" {
		code = bad.Code
	}
	return reported{&tenon.Error{Code: code, Message: bad.Text}}
}

func (d *doctor) print(c check) error {
	mark := map[string]string{checkOK: d.outStyle(green, "✓"), checkWarn: d.outStyle(yellow, "!"), checkFail: d.outStyle(red, "✗"), checkSkip: d.outStyle(dim, "-")}[c.Status]
	var b strings.Builder
	head := c.Area
	if c.Name != "" {
		head += " " + safeLine(c.Name)
	}
	lines := strings.Split(c.Text, "\n")
	fmt.Fprintf(&b, "%s %s  %s\n", mark, d.outStyle(bold, head), safeLine(lines[0]))
	for _, l := range lines[1:] {
		fmt.Fprintf(&b, "    %s\n", safeLine(l))
	}
	if len(c.Phases) > 0 {
		var phases []string
		for _, p := range c.Phases {
			phases = append(phases, p.Name+" "+took(p.Millis))
		}
		fmt.Fprintf(&b, "    %s\n", d.outStyle(dim, strings.Join(phases, ", ")))
	}
	if c.Remedy != "" {
		for i, l := range wrap(c.Remedy, d.width()-8) {
			fmt.Fprintf(&b, "    %s %s\n", []string{"→", " "}[min(i, 1)], safeLine(l))
		}
	}
	return d.write([]byte(b.String()))
}
