package cli

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

// check is one check of the doctor.
type check httpapi.Check

// failed returns the check as failed with an error and a remedy.
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
		Short: "Check the setup and suggest fixes",
		Long: "Checks the configuration, the programs that it starts, the store, each server and each model that\n" +
			"is in use, and suggests a fix for each problem. It connects to servers as a run does, and shows\n" +
			"the time of each step (dns, tcp, tls, start, discover, initialize, list). For a model it checks\n" +
			"the key and the network; only --ask-models sends a request. It checks tools as a model would see\n" +
			"them. The exit status is 2 for an invalid configuration and 1 for any other failure; warnings do\n" +
			"not count.",
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
	cmd.Flags().StringArrayVar(&only, "server", nil, "check only this `SERVER` and its program; may be repeated")
	cmd.Flags().BoolVar(&models, "ask-models", false, "make one small request to each model, which may cost money")
	cmd.Flags().DurationVar(&patience, "timeout", patience, "`TIME` limit for each server and model")
	return cmd
}

// doctor collects the results of the checks of tenon doctor.
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
			d.add(check{Area: area, Status: checkSkip, Text: "not checked: the configuration is invalid"})
		}
		return d.report()
	}
	for _, name := range d.only {
		if _, there := cfg.Servers[name]; !there {
			return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name,
				didYouMean(name, cfg.ServerNames()))
		}
	}
	d.programs(cfg)
	if list, err := d.proposals(ctx); err == nil { // on an error, no tenon serve is running
		d.waiting(list)
	}
	if !d.trust && !d.isTrusted(ctx, cfg) {
		for _, area := range []string{"store", "server", "model"} {
			d.add(check{Area: area, Status: checkSkip, Text: "not checked: you have not trusted the project"})
		}
		return d.report()
	}
	h, err := d.open(ctx, opening{connect: true, live: true})
	if code := tenon.ErrorCode(err); code == tenon.CodeWaiting || code == tenon.CodeDenied ||
		code == tenon.CodeCancelled {
		return err
	}
	if err != nil {
		d.add(check{Area: "store"}.failed(err, "")) // the error says what to do
		return d.report()
	}
	defer closing(h, &err)
	d.host(ctx, h)
	return d.report()
}

// waiting reports changes of the configuration that a running tenon serve holds back.
func (d *doctor) waiting(list []httpapi.Proposal) {
	for _, p := range list {
		text := plural(len(p.Differences), "change") + " held back until you agree: " + shorten(changedPaths(p), 100)
		if p.Kind == httpapi.ProposalEdit {
			text = "a request of '" + safeLine(string(p.By)) + "' proposes " + plural(len(p.Differences), "change") +
				": " + shorten(changedPaths(p), 100)
		}
		d.add(check{Area: "serve", Name: p.ID, Status: checkWarn, Text: text, Remedy: p.Command})
	}
}

// isTrusted reports whether the project may be used. Nothing of the project is started before this check.
func (d *doctor) isTrusted(ctx context.Context, cfg *config.Config) bool {
	c := check{Area: "trust", Name: cfg.File, Status: checkOK}
	v, err := d.judgeTrust(ctx, cfg)
	switch {
	case err != nil:
		d.add(c.failed(err, ""))
		return false
	case v.How == trustNoProject || v.How == trustNamed:
		return true
	case !v.Trusted():
		text := "you have not trusted this project yet, so it is not started"
		if v.Record != nil {
			text = "the project has changed since you trusted it, so it is not started"
		}
		d.add(c.failed(&tenon.Error{Code: tenon.CodeWaiting, Message: text},
			"tenon trust shows what it would do and asks"))
		return false
	}
	c.Text = trustText(v)
	d.add(c)
	return true
}

// host checks the store, the servers, the models and the tools of an open host.
func (d *doctor) host(ctx context.Context, h *host.Host) {
	d.store(ctx, h)
	d.together(ctx, d.servers(h), d.models(h))
	d.tools(ctx, h)
}

// doctor runs the checks for the workbench page, on the host of a running server.
func (s *server) doctor(h *host.Host) func(ctx context.Context, only []string) ([]httpapi.Check, error) {
	return func(ctx context.Context, only []string) ([]httpapi.Check, error) {
		d := &doctor{app: s.a, only: only, patience: doctorPatience}
		if len(only) == 0 {
			d.configuration(ctx) // reads the file again, because a broken file is not in use yet
		}
		d.programs(h.Service().Info().Config)
		if list, err := s.Proposals(ctx); err == nil {
			d.waiting(list)
		}
		d.host(ctx, h)
		list := make([]httpapi.Check, len(d.checks))
		for i, c := range d.checks {
			list[i] = httpapi.Check(c)
		}
		return list, ctx.Err()
	}
}

// doctorPatience is the default time limit for each server and model.
const doctorPatience = 30 * time.Second

func (d *doctor) add(c check) { d.checks = append(d.checks, c) }

// configuration loads the configuration and adds its check.
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
		d.add(c.failed(err, "fix the errors above; tenon config validate checks the file again"))
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

// installers maps common programs that start servers to their installation hints.
var installers = map[string]string{
	"npx": "install Node.js: https://nodejs.org", "node": "install Node.js: https://nodejs.org",
	"uvx": "install uv: https://docs.astral.sh/uv",
	"uv":  "install uv: https://docs.astral.sh/uv", "docker": "install Docker: https://docs.docker.com/get-docker",
	"python":  "install Python: https://www.python.org",
	"python3": "install Python: https://www.python.org", "bunx": "install Bun: https://bun.sh",
	"deno": "install Deno: https://deno.com",
}

// programs looks up the programs that start servers.
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
				text = fmt.Errorf("it does not exist or cannot be run; %s cannot be started",
					strings.Join(users[program], ", "))
			}
			remedy := cmp.Or(installers[filepath.Base(program)],
				"install it, or write its path into servers."+users[program][0]+".command")
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

// store checks that the open store can be read and written.
func (d *doctor) store(ctx context.Context, h *host.Host) {
	folder := filepath.Dir(h.Service().Info().Socket)
	c := check{Area: "store", Name: folder, Status: checkOK}
	start := time.Now()
	sessions, err := h.Sessions().List(ctx, host.SessionFilter{Limit: 1})
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
	if h.Service().Info().Config.HasPostgres() {
		c.Name = "PostgreSQL"
	}
	if err := h.Service().Storage().State().Probe(ctx); err != nil { // what a new run needs, as /readyz checks it
		d.add(c.failed(err, "")) // the error says what to do
		return
	}
	c.Text = "can be read and written"
	if len(sessions) == 0 {
		c.Text += "; no session yet"
	}
	d.add(d.soundStore(ctx, h, c))
	d.database(ctx, h)
}

// database adds a check for each property of the database of the store.
func (d *doctor) database(ctx context.Context, h *host.Host) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	for _, f := range host.ExamineStore(ctx, h) {
		c := check{Area: "store", Name: "PostgreSQL " + f.Name, Status: checkOK, Text: f.Text, Remedy: f.Remedy}
		switch {
		case f.Err != nil:
			c = c.failed(f.Err, f.Remedy)
		case f.Remedy != "":
			c.Status = checkWarn
		}
		d.add(c)
	}
}

// soundStore adds the result of a quick check for damage to the store's check.
func (d *doctor) soundStore(ctx context.Context, h *host.Host, c check) check {
	k, err := host.KeepStore(d.storeConfig(h))
	if err != nil {
		return c // a store of the program
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	r, err := k.Check(ctx, true, nil)
	switch {
	case err != nil:
		return c.failed(err, "")
	case !r.OK():
		err := tenon.Errorf(tenon.CodeStore, "it is damaged: %s", r.Problems[0])
		return c.failed(err, "find all damage with tenon store check, then save the rest with tenon store repair")
	}
	return c
}

// job is a check that may take long.
type job func(ctx context.Context) check

// together runs jobs, a few at a time, and adds their checks in the order of the jobs.
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

// servers returns a job for each server.
func (d *doctor) servers(h *host.Host) []job {
	var jobs []job
	for name, entry := range h.Service().Info().Config.Servers {
		if entry.Elsewhere && d.wanted(name) {
			jobs = append(jobs, func(context.Context) check {
				return check{Area: "server", Name: name, Status: checkOK,
					Text: "not used here: " + entry.WhereElse(name)}
			})
		}
	}
	for _, name := range serverNames(h) {
		if !d.wanted(name) {
			continue
		}
		jobs = append(jobs, func(ctx context.Context) check { return d.server(ctx, h, name) })
	}
	return jobs
}

// server checks one server. It checks the network before the protocol, so that the error names the step that fails.
func (d *doctor) server(ctx context.Context, h *host.Host, name string) check {
	c := check{Area: "server", Name: name, Status: checkOK}
	cfg := h.Service().Info().Config.Servers[name]
	remote := cfg.InferTransport() != servers.TransportStdio
	if remote {
		phases, err := servers.Reach(ctx, cfg.URL)
		c.Phases = phases
		var u *servers.Unreached
		if errors.As(err, &u) {
			return c.failed(&tenon.Error{Code: tenon.CodeUnreachable, Message: u.Text, Err: err}, u.Remedy)
		}
	}
	tools, err := h.Service().Connections()[name].List(ctx)
	if err == nil && !cfg.LoadsTools() {
		err = h.Service().Connections()[name].Connect(ctx)
	}
	st := h.Service().Connections()[name].Status()
	c.Phases = append(c.Phases, st.Phases...)
	if err != nil {
		if st.Error != nil {
			err = st.Error
		}
		return c.failed(err, serverRemedy(name, cfg, tenon.ErrorCode(err)))
	}
	has := plural(len(tools), "tool")
	if !cfg.LoadsTools() {
		has = "the configuration lists its tools"
	}
	c.Text = fmt.Sprintf("%s over %s, protocol %s, %s", cmp.Or(st.Server, "it does not say its name"),
		serverInfo{Status: st}.over(), st.Protocol, has)
	if st.Deprecated {
		c.Status, c.Remedy = checkWarn, "the protocol advises against HTTP+SSE; see whether the server has an "+
			"address for transport http"
	}
	return c
}

func serverRemedy(name string, cfg servers.Config, code tenon.Code) string {
	logs := "read its log: tenon servers logs " + name
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
			switch cfg.InferTransport() {
			case servers.TransportAuto:
				return "check the path in the URL: all transports were tried; " + logs
			case servers.TransportWebSocket:
				return "check the path in the URL; " + logs
			}
			return "check the path in the URL, and set servers." + name + ".transport: auto, which tries all of " +
				"them; " + logs
		}
		return "check that the command is an MCP server; " + logs
	case tenon.CodeRateLimited:
		return "try again later"
	}
	return logs
}

// models returns a job for each model that is in use.
func (d *doctor) models(h *host.Host) []job {
	if len(d.only) > 0 {
		return nil
	}
	var jobs []job
	cfg := h.Service().Info().Config
	for _, name := range cfg.ModelNames() {
		jobs = append(jobs, func(ctx context.Context) check { return d.model(ctx, h, name) })
	}
	if len(jobs) == 0 {
		jobs = append(jobs, func(ctx context.Context) check {
			c := check{Area: "model", Status: checkOK}
			if found, ok := host.DetectModel(ctx, d.lookupEnv, true); ok {
				c.Name = found
				return d.found(ctx, h, c)
			}
			c.Status, c.Text, c.Remedy = checkWarn, "none is configured and none was found",
				"tenon models login openai keeps a key; or set a provider's key, such as ANTHROPIC_API_KEY, or add "+
					"one to models"
			return c
		})
	}
	return jobs
}

// found checks a model that was detected, because the configuration names none.
func (d *doctor) found(ctx context.Context, h *host.Host, c check) check {
	provider, _, _ := strings.Cut(c.Name, "/")
	p, _ := model.Lookup(provider)
	where := "a server on this machine offers it"
	switch {
	case d.keepsKey(provider):
		where = "a key is kept by tenon models login"
	case p.KeyEnv != "":
		where = "a key is in " + p.KeyEnv
	}
	if !d.askModels {
		c.Text = where + "; it was not tried: `tenon models test` asks the model"
		return c
	}
	return d.tried(ctx, h, c)
}

func (d *doctor) model(ctx context.Context, h *host.Host, name string) check {
	c := check{Area: "model", Name: name, Status: checkOK}
	m, err := h.Service().Info().Config.Model(ctx, name)
	if err != nil {
		return c.failed(err, "set it, or change models."+name+".api_key")
	}
	p, _ := model.Lookup(m.Provider)
	if m.Provider == "script" {
		c.Text = "answers from " + m.Path
		if _, err := os.Stat(m.Path); err != nil {
			return c.failed(tenon.Errorf(tenon.CodeNotFound, "%w", err),
				"write the file, or change models."+name+".path")
		}
		return c
	}
	if p.Own && m.BaseURL == p.BaseURL {
		c.Text = "credentials and region of the machine; `tenon models test " + name + "` asks the model"
		return c
	}
	if p.KeyEnv != "" && m.BaseURL == p.BaseURL && m.APIKey.IsZero() {
		return c.failed(tenon.Errorf(tenon.CodeAuth, "there is no key for %s", m.Provider),
			"set "+p.KeyEnv+", or write models."+name+".api_key")
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
	return d.tried(ctx, h, c)
}

// tried sends a test question to a model and returns its check with the outcome.
func (d *doctor) tried(ctx context.Context, h *host.Host, c check) check {
	t, err := h.Models().Test(ctx, c.Name)
	switch {
	case err != nil:
		return c.failed(err, "")
	case t.Error != nil:
		return c.failed(t.Error, t.Advice)
	}
	c.Text = fmt.Sprintf("%s answered in %s", cmp.Or(t.Model, c.Name), took(t.Millis))
	if t.Tool != nil && !*t.Tool {
		c.Status, c.Remedy = checkWarn, "it was asked to call a tool and did not; tool_mode: react may help"
	}
	return c
}

// report prints the checks. If a check failed, the exit status is 1; an invalid configuration or an untrusted project
// has the status of its error. The output has the error code of each check.
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
	if bad.Area == "config" || bad.Area == "trust" {
		code = bad.Code
	}
	return reported{&tenon.Error{Code: code, Message: bad.Text}}
}
