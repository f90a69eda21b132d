package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/httpapi"
)

// serveClaim is the lease of the process that serves a store.
const serveClaim = "serve"

// The bounds of a connection to serve.
const (
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	maxHeader    = 64 << 10
	shutdownTime = 2 * time.Second
)

// defaultGrace is below what init systems and containers give a process.
const defaultGrace = 8 * time.Second

func newServe(a *app) *cobra.Command {
	grace := defaultGrace
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workbench and the HTTP APIs, and work on runs in the background",
		Long: "Stays and serves the workbench, pages for a browser whose address it prints at a terminal, and the HTTP APIs:\n" +
			"the native one under /api/v1, ResearchAI's (/chat, /mcp/...) and OpenAI's (/v1/chat/completions). It listens on 127.0.0.1:8420 unless --listen or serve.listen says otherwise, and takes\n" +
			"requests with a bearer token: that of serve.auth, else one that is made at the first start and kept beside the\n" +
			"store in serve.token, which only you can read.\n\n" +
			"It also works on the runs of the project's store: those that tenon run --detach hands over, those whose\n" +
			"process died, those that were decided while nobody worked on them, and those that have waited for a decision\n" +
			"as long as they may. Beside the address it listens on a socket in the store's folder, serve.sock, that only\n" +
			"you can use. One process at a time serves a store; other verbs work beside it.\n\n" +
			"SIGTERM or Ctrl-C stops it: what is under way may end within the grace, nothing new begins, and the runs go\n" +
			"on under the next tenon serve, or with tenon runs resume. A second one ends it at once. The\n" +
			"configuration is loaded again when one of its files changes, and on SIGHUP; where it has an error the last good\n" +
			"one stays, and servers whose entries are what they were keep their connections. The log on stderr says what\n" +
			"it does; --log-level warn makes it quiet.",
		Example: "  tenon serve\n  curl -H \"Authorization: Bearer $(cat .tenon/serve.token)\" http://127.0.0.1:8420/api/v1/runs\n" +
			"  tenon serve -c tenon.yaml --listen 127.0.0.1:9000 --log-level debug",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return usage(cmd, "--grace must not be negative")
			}
			return a.serve(cmd.Context(), f, grace)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "`ADDRESS:PORT` to listen on, or off (default: serve.listen, 127.0.0.1:8420)")
	cmd.Flags().StringVar(&f.model, "model", "", "`MODEL` in place of what agents name: an entry of models, provider/name, or script:FILE")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` of your token; one is made where there is none (default: serve.token beside the store)")
	cmd.Flags().DurationVar(&grace, "grace", grace, "`TIME` that what is under way has to end when tenon serve is stopped")
	return cmd
}

func (a *app) serve(ctx context.Context, f *serveFlags, grace time.Duration) (err error) {
	a.serving = true
	a.grace.Store(int64(grace))
	h, err := a.open(ctx, opening{connect: true, lasting: true, model: f.model})
	if err != nil {
		return err
	}
	s := &server{a: a, host: h, flags: f, again: make(chan chan<- error)}
	defer func() { closing(s.host, &err) }()
	socket := h.Socket()
	release, ok, err := h.Claim(serveClaim)
	if err != nil {
		return err
	}
	if !ok {
		return tenon.Errorf(tenon.CodeConflict, "another tenon serve works on this store; it listens on %s", socket)
	}
	defer release()
	tcp, err := a.listenTCP(ctx, f, h.Config(), h.Logger())
	if err != nil {
		return err
	}
	if tcp != nil {
		s.address = tcp.Addr().String()
		if s.last, err = s.tcpHandler(ctx, h); err != nil {
			return errors.Join(err, tcp.Close())
		}
	}
	l, err := httpapi.Listen(socket)
	if err != nil {
		if tcp != nil {
			_ = tcp.Close() // nobody came yet
		}
		return err
	}
	a.noInput = true // from here on nobody is asked
	hup, stop := hangups()
	defer stop()
	log := h.Logger()
	log.Info("tenon serve: at work", "socket", socket, "servers", len(h.Servers()), "process", os.Getpid(), "version", version().Version)
	if tcp != nil {
		s.announce(log, urlOf(tcp))
		if path := besideSocket(h, ".url"); path != "" { // for scripts; who cannot read it asks the log
			if err := os.WriteFile(path, []byte(urlOf(tcp)+"\n"), 0o600); err != nil {
				log.Warn("where tenon serve listens cannot be written down", "error", err)
			}
			defer os.Remove(path)
		}
	}
	return s.serve(ctx, l, tcp, hup, grace)
}

// announce says where to come and with which token.
func (s *server) announce(log *slog.Logger, url string) {
	auth := s.host.Config().Serve.Auth
	switch {
	case auth.Type == config.ServeOpen:
		log.Warn("tenon serve: listening, to everybody on this machine", "url", url)
	case s.flags.tokenFile == "" && s.host.Config().HasServeSecret():
		log.Info("tenon serve: listening", "url", url, "token", "that of serve.auth.secret")
	default:
		log.Info("tenon serve: listening", "url", url, "token_file", cmp.Or(s.flags.tokenFile, tokenPath(s.host)))
	}
	// Behind the # a token reaches no server and no history. It is shown to the person at
	// the terminal alone: logs are kept.
	switch {
	case !s.a.errTTY || s.a.quiet || !s.host.Config().Serve.HasUI():
	case s.token.IsZero():
		s.a.note("workbench: %s/", url)
	default:
		s.a.note("workbench: %s/#token=%s", url, s.token.Reveal())
	}
}

// serve serves until ctx ends. Requests under way get a moment to end, streams
// end at once.
func (s *server) serve(ctx context.Context, l, tcp net.Listener, hup <-chan os.Signal, grace time.Duration) error {
	var cut context.CancelFunc
	s.cut, cut = context.WithCancel(context.WithoutCancel(ctx))
	s.charge(ctx, s.host)
	defer s.stop(grace, cut)
	base, leave := context.WithCancelCause(context.WithoutCancel(ctx)) // of the requests
	defer leave(nil)
	webs := []*http.Server{webServer(s.at(&s.local), base, s.host.Logger())}
	listeners := []net.Listener{l}
	if tcp != nil {
		webs, listeners = append(webs, webServer(s.at(&s.remote), base, s.host.Logger())), append(listeners, tcp)
	}
	failed := make(chan error, len(webs))
	for i, w := range webs {
		go func() { failed <- w.Serve(listeners[i]) }()
	}
	end := func(left int) {
		leave(httpapi.ErrStopping)
		var all sync.WaitGroup
		for _, w := range webs {
			all.Go(func() { shutdown(ctx, w) })
		}
		all.Wait()
		for range left {
			<-failed
		}
	}
	s.files.changed(s.host.Config().Files())
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if s.files.changed(s.host.Config().Files()) {
				_ = s.reload(ctx) // the log says it
			}
			continue
		case err := <-failed:
			end(len(webs) - 1)
			return tenon.Errorf(tenon.CodeInternal, "tenon serve cannot listen any more: %w", err)
		case <-hup:
			if !s.a.gone() {
				_ = s.reload(ctx) // the log says it
				continue
			}
			s.host.Logger().Info("tenon serve: stopping", "cause", "its terminal has gone")
		case done := <-s.again:
			done <- s.reload(ctx)
			continue
		case <-ctx.Done():
			s.host.Logger().Info("tenon serve: stopping", "cause", context.Cause(ctx))
		}
		end(len(webs))
		return nil
	}
}
