package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
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
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Work on runs in the background: what tenon run --detach hands over, and what was interrupted",
		Long: "Stays and works on the runs of the project's store: those that tenon run --detach hands over, those whose\n" +
			"process died, those that were decided while nobody worked on them, and those that have waited for a decision\n" +
			"as long as they may. It listens on a socket beside the store, serve.sock, that only you can use. One process\n" +
			"at a time serves a store; other verbs work beside it.\n\n" +
			"SIGTERM or Ctrl-C stops it: what is under way may end within the grace, nothing new begins, and the runs go\n" +
			"on under the next tenon serve, or with tenon runs resume. A second one ends it at once. SIGHUP loads the\n" +
			"configuration again; where it has an error the last good one stays. The log on stderr says what it does;\n" +
			"--log-level warn makes it quiet.",
		Example: "  tenon serve\n  tenon serve -c tenon.yaml --log-level debug",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return usage(cmd, "--grace must not be negative")
			}
			return a.serve(cmd.Context(), grace)
		},
	}
	cmd.Flags().DurationVar(&grace, "grace", grace, "`TIME` that what is under way has to end when tenon serve is stopped")
	return cmd
}

func (a *app) serve(ctx context.Context, grace time.Duration) (err error) {
	a.serving = true
	h, err := a.open(ctx, opening{connect: true, lasting: true})
	if err != nil {
		return err
	}
	s := &server{a: a, host: h}
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
	l, err := httpapi.Listen(socket)
	if err != nil {
		return err
	}
	a.noInput = true // from here on nobody is asked
	hup, stop := hangups()
	defer stop()
	h.Logger().Info("tenon serve: at work", "socket", socket, "servers", len(h.Servers()), "process", os.Getpid(), "version", version().Version)
	return s.serve(ctx, l, hup, grace)
}

// serve serves until ctx ends. Requests under way get a moment to end, streams
// end at once.
func (s *server) serve(ctx context.Context, l net.Listener, hup <-chan os.Signal, grace time.Duration) error {
	var cut context.CancelFunc
	s.cut, cut = context.WithCancel(context.WithoutCancel(ctx))
	s.charge(ctx, s.host)
	defer s.stop(grace, cut)
	base, leave := context.WithCancel(context.WithoutCancel(ctx)) // of the requests
	defer leave()
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.host.Logger().Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	for {
		select {
		case err := <-failed:
			return tenon.Errorf(tenon.CodeInternal, "tenon serve cannot listen any more: %w", err)
		case <-hup:
			if !s.a.gone() {
				s.reload(ctx)
				continue
			}
			s.host.Logger().Info("tenon serve: stopping", "cause", "its terminal has gone")
		case <-ctx.Done():
			s.host.Logger().Info("tenon serve: stopping", "cause", context.Cause(ctx))
		}
		leave()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			_ = server.Close() // who is cut off now had its time
		}
		<-failed
		return nil
	}
}
