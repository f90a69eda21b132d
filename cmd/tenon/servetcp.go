package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/web"
)

// minToken is the shortest token that is taken, in bytes: others can be guessed.
const minToken = 16

// serveFlags are those of serve about its address.
type serveFlags struct {
	listen    string
	tokenFile string
	model     string
}

// address is where tenon serve listens, beside its socket. Default says that nobody
// asked for it.
func (f *serveFlags) address(cfg *config.Config) (addr string, isDefault bool) {
	s := cfg.Serve.WithDefaults()
	return cmp.Or(f.listen, s.Listen), f.listen == "" && (cfg.Serve.Listen == "" || cfg.Origin("serve.listen") == "default")
}

// listenTCP opens the address. Where nobody asked for one and the usual one is taken,
// as by the tenon serve of another project, any free one is.
func (a *app) listenTCP(ctx context.Context, f *serveFlags, cfg *config.Config, log *slog.Logger) (net.Listener, error) {
	addr, isDefault := f.address(cfg)
	if addr == config.ListenOff {
		return nil, nil
	}
	if why := config.CheckListen(addr); why != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "--listen %s: %s", addr, why)
	}
	if cfg.Serve.Auth.Type == config.ServeOpen && !config.IsLoopback(addr) {
		return nil, tenon.Errorf(tenon.CodeConfig, "serve.auth.type is none, which is for loopback only; %s is not", addr)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil && isDefault && errors.Is(err, syscall.EADDRINUSE) {
		log.Warn("another program listens on "+addr+"; a free port is taken instead, and serve.listen chooses one", "address", addr)
		l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "tenon serve cannot listen on %s: %w; choose another address with --listen", addr, err)
	}
	if !config.IsLoopback(l.Addr().String()) {
		log.Warn("tenon serve can be reached from other machines, without TLS: put a proxy with TLS in front", "address", l.Addr().String())
	}
	return l, nil
}

// tcpHandler serves a host to those who have a token.
func (s *server) tcpHandler(ctx context.Context, h *host.Host) (http.Handler, error) {
	f, addr, cfg := s.flags, s.address, h.Config()
	conf := cfg.Serve.WithDefaults()
	c := httpapi.Config{Guarded: true, Origins: conf.Origins, APIs: conf.APIs, Agent: conf.Agent, Edit: s.edit, Doctor: s.doctor(h)}
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
			return httpapi.Caller{Principal: tenon.PrincipalLocal, Owner: true}, nil
		}
		return httpapi.New(h, c), nil
	}
	var own tenon.Secret
	var err error
	if f.tokenFile == "" {
		own, err = cfg.ServeSecret(ctx)
	}
	if err == nil && own.IsZero() {
		own, err = ownToken(cmp.Or(f.tokenFile, tokenPath(h)))
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
	h.Learn(own)
	s.token = own
	for _, t := range others {
		h.Learn(t)
	}
	c.Authenticate = httpapi.Tokens(own, others)
	return httpapi.New(h, c), nil
}

// checkTokens refuses tokens that are short, or the same for two.
func checkTokens(own tenon.Secret, others map[tenon.Principal]tenon.Secret) error {
	seen := map[string]string{}
	all := map[string]tenon.Secret{"serve.auth.secret": own}
	for who, t := range others {
		all["serve.auth.tokens."+string(who)] = t
	}
	for where, t := range all {
		if len(t.Reveal()) < minToken {
			return tenon.Errorf(tenon.CodeConfig, "%s: the token has less than %d bytes, so it could be guessed", where, minToken)
		}
		if other, ok := seen[t.Reveal()]; ok {
			return tenon.Errorf(tenon.CodeConfig, "%s and %s are the same token", min(where, other), max(where, other))
		}
		seen[t.Reveal()] = where
	}
	return nil
}

// tokenPath is where the local user's token is kept.
func tokenPath(h *host.Host) string { return besideSocket(h, ".token") }

// besideSocket is a file of tenon serve beside its socket: serve.token, and serve.url,
// which says where it listens. "": the store has no place.
func besideSocket(h *host.Host, ext string) string {
	if s := h.Socket(); s != "" {
		return strings.TrimSuffix(s, ".sock") + ext
	}
	return ""
}

// ownToken reads the local user's token, or makes one.
func ownToken(path string) (tenon.Secret, error) {
	if path == "" {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeInvalid, "there is no place for the token of tenon serve: name one with --token-file")
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(path)
	}
	if err == nil {
		var st os.FileInfo
		if st, err = os.Stat(path); err == nil && runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
			return tenon.Secret{}, tenon.Errorf(tenon.CodeConfig, "the token in %s can be read by others (mode %04o): chmod 600 it, or remove it to have a new one made", path, st.Mode().Perm())
		}
	}
	if err != nil {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeStore, "the token of tenon serve cannot be read: %w", err)
	}
	return tenon.NewSecret(strings.TrimSpace(string(b))), nil
}

// newToken makes a token of 256 bits and keeps it where only the user can read it.
func newToken(path string) (tenon.Secret, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	token := "tenon_" + base64.RawURLEncoding.EncodeToString(b[:])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(token + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeStore, "the token of tenon serve cannot be kept: %w; name another file with --token-file", err)
	}
	return tenon.NewSecret(token), nil
}

// webServer is an HTTP server with our bounds on a connection.
func webServer(handler http.Handler, base context.Context, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// shutdown lets requests under way end within the time, and ends the rest.
func shutdown(ctx context.Context, s *http.Server) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := s.Shutdown(end); err != nil {
		_ = s.Close() // who is cut off now had its time
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
