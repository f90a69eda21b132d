package cli

import (
	"cmp"
	"context"
	"errors"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/web"
)

// serveFlags are the flags of tenon serve about its address.
type serveFlags struct {
	listen    string
	tokenFile string
	model     string
	passed    net.Listener // the listener from the service manager; nil if it passed none
}

// address returns the TCP address of tenon serve. isDefault reports that neither a flag nor
// a file names it.
func (f *serveFlags) address(cfg *config.Config) (addr string, isDefault bool) {
	s := cfg.Serve.WithDefaults()
	return cmp.Or(f.listen, s.Listen), f.listen == "" &&
		(cfg.Serve.Listen == "" || cfg.Origin("serve.listen") == "default")
}

// listenTCP opens the TCP listener, or takes the one that the service manager passed. It returns nil for "off". If
// the default address is in use, for example by the tenon serve of another project, it takes a free port.
func (a *app) listenTCP(ctx context.Context, f *serveFlags, cfg *config.Config, log *slog.Logger) (net.Listener,
	error) {
	if f.passed != nil {
		if err := useSocket(f.passed, f, cfg, log); err != nil {
			return nil, err
		}
		warnReachable(f.passed, log)
		return f.passed, nil
	}
	addr, isDefault := f.address(cfg)
	if addr == config.ListenOff {
		return nil, nil
	}
	if why := config.CheckListen(addr); why != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "--listen %s: %s", addr, why)
	}
	if err := checkOpen(cfg, addr); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil && isDefault && errors.Is(err, syscall.EADDRINUSE) {
		log.Warn("another program listens on "+addr+"; a free port is taken instead, and serve.listen chooses one",
			"address", addr)
		l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "tenon serve cannot listen on %s: %w; choose another "+
			"address with --listen", addr, err)
	}
	if err := checkOpen(cfg, l.Addr().String()); err != nil { // the name may resolve to another address
		return nil, errors.Join(err, l.Close())
	}
	warnReachable(l, log)
	return l, nil
}

// warnReachable warns of a listener that other machines reach.
func warnReachable(l net.Listener, log *slog.Logger) {
	if !config.IsLoopback(l.Addr().String()) {
		log.Warn("tenon serve can be reached from other machines, without TLS: put a proxy with TLS in front",
			"address", l.Addr().String())
	}
}

// checkOpen refuses auth.type none for an address that other machines reach. It is checked
// for the written address, for the one that was listened on, and again for every
// configuration that is loaded while the listener stays open.
func checkOpen(cfg *config.Config, addr string) error {
	if cfg.Serve.Auth.Type != config.ServeOpen || config.IsLoopback(addr) {
		return nil
	}
	return tenon.Errorf(tenon.CodeConfig, "serve.auth.type is none: %s: other machines reach this address, and none "+
		"is for loopback only; listen on 127.0.0.1, or write serve.auth.type: token", addr)
}

// tcpHandler returns the handler of the TCP listener for a host.
func (s *server) tcpHandler(ctx context.Context, h *host.Host) (http.Handler, error) {
	f, addr, cfg := s.flags, s.address, h.Service().Info().Config
	if err := checkOpen(cfg, addr); err != nil {
		return nil, err
	}
	conf := cfg.Serve.WithDefaults()
	c := httpapi.Config{Guarded: true, Origins: conf.Origins, APIs: conf.APIs, Agent: conf.Agent, Editor: s, Keys: s,
		Gateway: s.gateway, Doctor: s.doctor(h), CancelLeft: conf.OnDisconnect == config.DisconnectCancel}
	if s.replicas != nil {
		c.Replicas = s.replicas
	}
	if conf.HasUI() {
		c.Pages = web.Files()
	}
	if cfg.Telemetry.HasMetrics() {
		c.Telemetry = s.a.collector
	}
	if name, _, err := net.SplitHostPort(addr); err == nil && !config.IsLoopback(addr) {
		c.Hosts = []string{strings.ToLower(name), "*"}
	}
	if conf.Auth.Type == config.ServeOpen {
		c.Authenticate = func(*http.Request) (httpapi.Caller, error) {
			return httpapi.LocalUser(), nil
		}
		return httpapi.New(h, c), nil
	}
	var own tenon.Secret
	var err error
	if f.tokenFile == "" {
		own, err = cfg.ServeSecret(ctx)
	}
	if err == nil && own.IsZero() {
		if f.tokenFile != "" {
			own, err = ownToken(f.tokenFile)
		} else {
			own, err = s.a.keptToken(tokenPath(h), h.Service().Info().Logger)
		}
	}
	if err != nil {
		return nil, err
	}
	others, err := cfg.ServeTokens(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkTokens(own, others); err != nil {
		return nil, err
	}
	h.Service().Callers().RegisterSecret(own)
	s.token = own
	for _, t := range others {
		h.Service().Callers().RegisterSecret(t)
	}
	c.Authenticate, c.OAuth = httpapi.Tokens(own, others), &s.oauth
	return httpapi.New(h, c), nil
}

// webServer is an HTTP server with our bounds on a connection.
func webServer(handler http.Handler, base context.Context, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    stdlog.New(&webLog{log: log}, "", 0)}
}

// webLog receives what an HTTP server logs: mostly mistakes of clients, which matter only for debugging. If it cannot
// accept connections, for example without file descriptors, it tries again by itself, and webLog warns.
type webLog struct {
	log *slog.Logger

	mu     sync.Mutex
	warned time.Time
}

// acceptPause is the time between two warnings that no connection can be accepted.
const acceptPause = 10 * time.Second

func (l *webLog) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	_, why, ok := strings.Cut(text, "Accept error: ")
	if !ok {
		l.log.Debug(text)
		return len(b), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.warned) >= acceptPause {
		l.warned = now
		why, _, _ = strings.Cut(why, "; retrying")
		l.log.Warn("no connection can be accepted at the moment; if there are too many open files, raise the limit "+
			"(ulimit -n, or LimitNOFILE of the unit)", "error", why)
	}
	return len(b), nil
}

// shutdown waits until the requests under way end, or until ctx ends. Then it ends the remaining requests.
func shutdown(ctx context.Context, s *http.Server) {
	if err := s.Shutdown(ctx); err != nil {
		_ = s.Close() // these requests exceeded the time
	}
}

// urlOf is the address of a listener as a person types it.
func urlOf(l net.Listener) string {
	addr := l.Addr().String()
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + addr
}
