package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// The limits of a connection to tenon serve.
const (
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	maxHeader    = 64 << 10
	shutdownTime = 2 * time.Second
)

// defaultGrace is less than the time that init systems and containers give a process to stop.
const defaultGrace = 8 * time.Second

func newServe(a *app) *cobra.Command {
	grace := defaultGrace
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workbench and HTTP APIs, and run in background",
		Long: "Serves the workbench (pages for a browser, whose address it prints on a terminal) and the HTTP\n" +
			"APIs: the native API under /api/v1, ResearchAI's (/chat, /mcp/...), OpenAI's\n" +
			"(/v1/chat/completions), and MCP at /mcp, for clients such as editors. It listens on\n" +
			"127.0.0.1:8420 unless --listen or serve.listen names another address. Requests need a bearer\n" +
			"token: the one in serve.auth, or one that the first start writes to serve.token next to the\n" +
			"store, readable only by you.\n\n" +
			"It also works on the runs of the project's store: runs of tenon run --detach, runs whose process\n" +
			"died, runs that were decided while no process worked on them, and runs whose wait for a decision\n" +
			"has expired. It also listens on the socket serve.sock in the store's folder, which only you can\n" +
			"use. One process at a time serves a store; other commands can use the store at the same time.\n\n" +
			"SIGTERM or Ctrl-C stops it. Calls in progress may finish within the grace period, and no new work\n" +
			"begins. The runs resume under the next tenon serve, or with tenon runs resume. A second signal\n" +
			"ends it at once. A socket that systemd passes (a unit such as tenon.socket) replaces serve.listen.\n\n" +
			"The configuration is loaded again when one of its files changes, and on SIGHUP. If it has an\n" +
			"error, the last valid one stays in use. Servers whose entries are unchanged keep their\n" +
			"connections. A change that only tightens takes effect at once. A change that loosens a rule, or\n" +
			"starts, sends or opens something, is held back until you agree: see tenon proposals. Editing the\n" +
			"file with a tenon command counts as agreement. The log goes to stderr; --log-level warn reduces\n" +
			"it.",
		Example: "  tenon serve\n  curl -H \"Authorization: Bearer $(cat .tenon/serve.token)\" " +
			"http://127.0.0.1:8420/api/v1/runs\n" +
			"  tenon serve -c tenon.yaml --listen 127.0.0.1:9000 --log-level debug",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return usage(cmd, "--grace must not be negative")
			}
			return a.serve(cmd.Context(), f, grace)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "`ADDRESS:PORT` to listen on, or off (default: serve.listen, "+
		"127.0.0.1:8420)")
	cmd.Flags().StringVar(&f.model, "model", "", "`MODEL` that replaces the agents' models: an entry of models, "+
		"provider/name, or script:FILE")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` of your token; it is created if it does not exist "+
		"(default: serve.token next to the store)")
	cmd.Flags().DurationVar(&grace, "grace", grace, "`TIME` that calls in progress have to finish when tenon "+
		"serve is stopped")
	return cmd
}

func (a *app) serve(ctx context.Context, f *serveFlags, grace time.Duration) (err error) {
	a.serving = true
	a.grace.Store(int64(grace))
	began := time.Now()
	if f.passed, err = passedSocket(a.lookupEnv); err != nil { // a server would inherit it
		return err
	}
	if f.passed != nil {
		defer f.passed.Close() // again, if it was served
	}
	h, err := a.open(ctx, opening{connect: true, lasting: true, begins: true, model: f.model})
	if err != nil {
		return err
	}
	cfg := h.Service().Info().Config
	s := &server{a: a, host: h, flags: f, again: make(chan order), running: cfg, since: time.Now(), loaded: cfg,
		loadedAt: began}
	if err := s.openGateway(h); err != nil {
		return errors.Join(err, h.Close())
	}
	s.oauth.Keys.Logger = h.Service().Info().Logger
	a.mcp.Store(s.gateway)
	if _, err := s.running.Project(); err != nil { // reads the scripts, to compare them at a reload
		return errors.Join(err, h.Close())
	}
	defer func() { closing(s.host, &err) }()
	socket := h.Service().Info().Socket
	release, ok, err := h.Service().Storage().Claim(host.ServeClaim)
	if err != nil {
		return err
	}
	if !ok {
		other := httpapi.NewClient(socket)
		defer other.Close()
		if err := other.Check(ctx); err != nil {
			return err
		}
		return servedBy(h, socket)
	}
	defer release()
	tcp, err := a.listenTCP(ctx, f, h.Service().Info().Config, h.Service().Info().Logger)
	if err != nil {
		return err
	}
	if tcp != nil {
		s.address = tcp.Addr().String()
		if s.last, err = s.tcpHandler(ctx, h); err != nil {
			return errors.Join(err, tcp.Close())
		}
	}
	url := besideSocket(h, ".url")
	if url != "" {
		_ = os.Remove(url) // left by a process that was killed; while the socket exists, the address is ours
	}
	l, err := httpapi.Listen(socket)
	if err != nil {
		if tcp != nil {
			_ = tcp.Close() // no client has connected yet
		}
		return err
	}
	a.noInput = true // asks no questions from here on
	hup, stop := hangups()
	defer stop()
	log := h.Service().Info().Logger
	log.Log(ctx, s.startLevel(tcp != nil), "tenon serve: at work", "socket", socket,
		"servers", len(h.Service().Connections()), "process", os.Getpid(), "version", version().Version)
	if tcp != nil {
		s.announce(ctx, log, urlOf(tcp))
		if url != "" { // written for scripts that need the address
			if err := writeFresh(url, urlOf(tcp)+"\n"); err != nil {
				log.Warn("the address of tenon serve cannot be stored", "error", err)
			}
			defer os.Remove(url)
		}
	}
	return s.serve(ctx, l, tcp, hup, grace)
}

// announce logs the address and where the token is. On a terminal it prints the address of the workbench.
func (s *server) announce(ctx context.Context, log *slog.Logger, url string) {
	auth := s.host.Service().Info().Config.Serve.Auth
	switch {
	case auth.Type == config.ServeOpen:
		log.Warn("tenon serve: listening, to everybody on this machine", "url", url)
	case s.flags.tokenFile == "" && s.host.Service().Info().Config.HasServeSecret():
		log.Log(ctx, s.startLevel(true), "tenon serve: listening", "url", url, "token", "from serve.auth.secret")
	default:
		log.Log(ctx, s.startLevel(true), "tenon serve: listening", "url", url, "token_file",
			cmp.Or(s.flags.tokenFile, tokenPath(s.host)))
	}
	// The part of a URL after # reaches no server and no history. The token goes only to the terminal, because logs are
	// kept.
	switch {
	case !s.a.errTTY || s.a.quiet || !s.host.Service().Info().Config.Serve.HasUI():
		return
	case s.token.IsZero():
		s.a.note("workbench: %s/", url)
	default:
		s.a.note("workbench: %s/#token=%s", url, s.token.Reveal())
	}
	s.a.hint("open it in a browser; Ctrl-C stops tenon serve")
}

// startLevel returns the level of the log lines about the start. A person at a terminal gets a line with the address in
// their place if there is a listener over TCP.
func (s *server) startLevel(listens bool) slog.Level {
	if listens && s.a.errTTY && s.a.logLevel == "" && s.host.Service().Info().Config.Serve.HasUI() {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// serve serves until ctx ends. Calls of gateway clients get the grace period to finish, other requests a short time.
// Streams end at once.
func (s *server) serve(ctx context.Context, l, tcp net.Listener, hup <-chan os.Signal, grace time.Duration) error {
	var cut context.CancelFunc
	s.cut, cut = context.WithCancel(context.WithoutCancel(ctx))
	s.charge(ctx, s.host)
	last, over := context.WithCancel(context.WithoutCancel(ctx)) // ends with the grace period
	defer over()
	s.announceReplica(ctx, s.host)
	defer s.stop(last, cut)
	base, leave := context.WithCancelCause(context.WithoutCancel(ctx)) // the base context of requests
	defer leave(nil)
	webs := []*http.Server{webServer(s.at((*surface).atSocket), base, s.host.Service().Info().Logger)}
	listeners := []net.Listener{l}
	if tcp != nil {
		webs = append(webs, webServer(s.at((*surface).overTCP), base, s.host.Service().Info().Logger))
		listeners = append(listeners, tcp)
	}
	failed := make(chan error, len(webs))
	for i, w := range webs {
		go func() { failed <- w.Serve(listeners[i]) }()
	}
	end := func(left int) {
		leave(httpapi.ErrStopping)
		time.AfterFunc(grace, over)
		s.end(last, webs)
		for range left {
			<-failed
		}
	}
	s.watch()
	manager := newSupervisor(s.a.lookupEnv, s.host.Service().Info().Logger)
	defer manager.close()
	alive, rest := manager.ticks()
	defer rest()
	manager.say("READY=1")
	look := time.NewTicker(s.a.checkEvery)
	defer look.Stop()
	for {
		select {
		case <-alive:
			manager.say("WATCHDOG=1")
			continue
		case <-look.C:
			if s.files.changed(s.watching) {
				_ = s.reload(ctx, "", false) // reload logs its errors
			}
			continue
		case err := <-failed:
			end(len(webs) - 1)
			return tenon.Errorf(tenon.CodeInternal, "tenon serve can no longer listen: %w", err)
		case <-hup:
			if !s.a.gone() {
				_ = s.reload(ctx, "", true) // reload logs its errors
				continue
			}
			s.host.Service().Info().Logger.Info("tenon serve: stopping", "cause", "its terminal has gone")
		case o := <-s.again:
			o.done <- s.reload(ctx, o.accept, o.again)
			continue
		case <-ctx.Done():
			s.host.Service().Info().Logger.Info("tenon serve: stopping", "cause", context.Cause(ctx))
		}
		manager.say("STOPPING=1")
		end(len(webs))
		return nil
	}
}

// end ends the web servers. Calls of gateway clients may last until ctx ends, and other requests a short time more.
func (s *server) end(ctx context.Context, webs []*http.Server) {
	s.leave()
	open, shut := context.WithCancel(context.WithoutCancel(ctx))
	defer shut()
	var all, calls sync.WaitGroup
	for _, w := range webs {
		all.Go(func() { shutdown(open, w) })
	}
	calls.Go(func() { s.gateway.Drain(ctx) })
	if s.replicas != nil {
		calls.Go(func() { s.replicas.Drain(ctx) })
	}
	s.host.Service().Drain(ctx)
	calls.Wait()
	defer time.AfterFunc(shutdownTime, shut).Stop()
	all.Wait()
}

// servedBy is the error about a store that another process serves.
func servedBy(h *host.Host, socket string) error {
	who, end := "", "end it"
	if pid := h.Service().Storage().State().Claimant(host.ServeClaim); pid > 0 {
		who, end = fmt.Sprintf(" (process %d)", pid), fmt.Sprintf("end it with: kill %d", pid)
	}
	return tenon.Errorf(tenon.CodeConflict, "another tenon serve%s works on this store; it listens on %s; use that "+
		"one, or %s; a process that is ending first waits for its tool calls, at most as long as its --grace", who,
		socket, end)
}
