package config

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/privatefile"
)

// ListenOff is the value of [Serve.Listen] with which tenon serve opens no TCP port and listens only on its socket.
const ListenOff = "off"

// The values of [ServeAuth.Type].
const (
	ServeToken = "token"
	ServeOpen  = "none"
)

// The values of [Serve.OnDisconnect].
const (
	DisconnectContinue = "continue"
	DisconnectCancel   = "cancel"
)

// Serve says what tenon serve offers over HTTP.
type Serve struct {
	// Address and port to listen on; `off`: only the socket next to the store. Put a proxy with TLS in front to
	// listen beyond this machine.
	Listen string `yaml:"listen" default:"127.0.0.1:8420"`
	// Whether the workbench, the browser UI, is served too. It needs the native API.
	UI *bool `yaml:"ui" default:"true"`
	// Labels of this process, which decide about servers with a `replica`. If all replicas read the same file, take
	// them from the environment, such as `["${TENON_REPLICA:-}"]`.
	Replica []string `yaml:"replica" default:"[]"`
	// Address at which the other replicas on PostgreSQL reach this process, such as `http://10.12.3.4:8420`, for
	// requests of MCP sessions that this process has. It also forwards such requests to them. Without it, neither.
	ReplicaURL string `yaml:"replica_url"`
	// APIs to serve: native is `/api/v1`, researchai `/chat` and `/mcp/…`, openai `/v1/…`, mcp `/mcp` for MCP clients.
	APIs []string `yaml:"apis" enum:"native,researchai,openai,mcp" default:"all"`
	// Authentication of requests.
	Auth ServeAuth `yaml:"auth"`
	// Further origins of browser pages that may send requests, such as `https://tools.example.com`. Their hosts are
	// accepted as host names of tenon, as behind a proxy.
	Origins []string `yaml:"origins" default:"[]"`
	// Whether a request of the HTTP API changes tenon.yaml without your agreement on the command line. Only in your
	// own file or the administrator's.
	AllowServerEdit bool `yaml:"allow_server_edit" default:"false"`
	// Agent that the researchai API asks.
	Agent string `yaml:"agent" default:"default"`
	// Fate of a run whose client disconnects before the answer. continue: the run continues in the background, and the
	// client can reconnect. cancel: the run is cancelled, unless another request waits for it. Calls of single tools
	// are always cancelled.
	OnDisconnect string `yaml:"on_disconnect" enum:"continue,cancel" default:"continue"`
}

// ServeAuth configures the authentication of requests to tenon serve over TCP.
type ServeAuth struct {
	// token: each request needs a bearer token. none: every client is treated as you; allowed on loopback only.
	Type string `yaml:"type" enum:"token,none" default:"token"`
	// Your token. Without it, tenon creates one at its first start and stores it next to the store, in serve.token.
	Secret tenon.Secret `yaml:"secret"`
	// Other principals: name -> token. Each has separate sessions, runs, grants and budgets; only you may switch
	// servers and read the configuration.
	Tokens map[string]tenon.Secret `yaml:"tokens"`
	// Access tokens of OAuth 2.1 for MCP clients, beside the tokens.
	OAuth ServeOAuth `yaml:"oauth"`
}

// HasUI reports whether the workbench is served.
func (s Serve) HasUI() bool { return s.UI == nil || *s.UI }

// WithDefaults returns a copy with defaults for absent values.
func (s Serve) WithDefaults() Serve {
	if s.UI == nil {
		on := s.HasUI()
		s.UI = &on
	}
	s.Listen = cmp.Or(s.Listen, "127.0.0.1:8420")
	s.Auth.Type = cmp.Or(s.Auth.Type, ServeToken)
	s.OnDisconnect = cmp.Or(s.OnDisconnect, DisconnectContinue)
	if len(s.APIs) == 0 {
		s.APIs = []string{"native", "researchai", "openai", "mcp"}
	}
	return s
}

// ServeSecret returns the token of the local user, or the zero Secret if none is configured. It returns the errors of
// [Config.Resolve].
func (c *Config) ServeSecret(ctx context.Context) (tenon.Secret, error) {
	return c.serveSecret(ctx, "serve.auth.secret", c.Serve.Auth.Secret)
}

// ServeTokens returns the tokens of the other principals. It returns the errors of [Config.Resolve].
func (c *Config) ServeTokens(ctx context.Context) (map[tenon.Principal]tenon.Secret, error) {
	tokens := map[tenon.Principal]tenon.Secret{}
	for name, t := range c.Serve.Auth.Tokens {
		t, err := c.serveSecret(ctx, "serve.auth.tokens."+name, t)
		if err != nil {
			return nil, err
		}
		tokens[tenon.Principal(name)] = t
	}
	return tokens, nil
}

// StoreKey returns the key that signs the rows of the store, or the zero Secret if none is configured. It returns the
// errors of [Config.Resolve].
func (c *Config) StoreKey(ctx context.Context) (tenon.Secret, error) {
	return c.serveSecret(ctx, "store.key", c.Store.Key)
}

// PostgresDSN returns the connections to the database of the store: dsn, and direct, which may be zero. It returns
// the errors of [Config.Resolve].
func (c *Config) PostgresDSN(ctx context.Context) (dsn, direct tenon.Secret, err error) {
	if dsn, err = c.serveSecret(ctx, "store.postgres.dsn", c.Store.Postgres.DSN); err != nil {
		return tenon.Secret{}, tenon.Secret{}, err
	}
	direct, err = c.serveSecret(ctx, "store.postgres.direct", c.Store.Postgres.Direct)
	return dsn, direct, err
}

// HasPostgres reports whether the store is in PostgreSQL.
func (c *Config) HasPostgres() bool {
	_, ok := c.secrets["store.postgres.dsn"]
	return ok || !c.Store.Postgres.DSN.IsZero()
}

// SamePostgres reports whether two configurations have their stores in the same database, or both in no database.
func (c *Config) SamePostgres(other *Config) bool {
	for _, path := range []string{"store.postgres.dsn", "store.postgres.direct"} {
		a, _ := c.SecretAt(path)
		b, _ := other.SecretAt(path)
		if a.Env != b.Env || a.File != b.File || a.Keyring != b.Keyring || !slices.Equal(a.Command, b.Command) {
			return false
		}
	}
	return c.Store.Postgres == other.Store.Postgres
}

// HasServeSecret reports whether the local user's token is configured.
func (c *Config) HasServeSecret() bool {
	_, ok := c.secrets["serve.auth.secret"]
	return ok || !c.Serve.Auth.Secret.IsZero()
}

// serveSecret resolves a token for access to tenon serve. It refuses a file that other users can read or replace,
// because they would then know the token.
func (c *Config) serveSecret(ctx context.Context, path string, own tenon.Secret) (tenon.Secret, error) {
	if ref, ok := c.secrets[path]; ok {
		if source, ok := c.SecretAt(path); ok && source.File != "" {
			if err := privatefile.Check(source.File); err != nil {
				return tenon.Secret{}, tenon.Errorf(tenon.CodeConfig, "the token is not used: %s (%s): %w", path,
					c.Origin(path), err)
			}
		}
		return c.resolve(ctx, ref, path)
	}
	return own, nil // set by a Go program
}

// CheckListen returns what is wrong with an address to listen on, or "" if it is valid.
func CheckListen(addr string) string {
	if addr == ListenOff {
		return ""
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "it must be ADDRESS:PORT, such as 127.0.0.1:8420, or off"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "its port must be a number from 0 to 65535"
	}
	return ""
}

// IsLoopback reports whether an address to listen on can be reached only from this machine. The name localhost
// counts, but the system may resolve it to another address: check the address again after listening. Every other
// name, an empty host, and the unspecified addresses 0.0.0.0 and :: do not count.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// isBaseURL reports whether a text is an HTTP URL of a scheme, a host and nothing more.
func isBaseURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		(u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == ""
}

// serve checks the sections serve and telemetry.
func (k *checker) serve() {
	s := k.c.Serve
	if why := CheckListen(cmp.Or(s.Listen, ListenOff)); why != "" {
		k.bad("serve.listen", "", "'%s' cannot be listened on: %s", s.Listen, why)
	} else if s.Auth.Type == ServeOpen && s.Listen != "" && s.Listen != ListenOff && !IsLoopback(s.Listen) {
		k.bad("serve.auth.type", "write token, or listen on 127.0.0.1",
			"none is for loopback only, and serve.listen is %s", s.Listen)
	}
	if s.ReplicaURL != "" && !isBaseURL(s.ReplicaURL) {
		k.bad("serve.replica_url", "such as http://10.1.2.3:8420, without a path",
			"'%s' is not the address of a replica", s.ReplicaURL)
	}
	for i, o := range s.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			o != u.Scheme+"://"+strings.ToLower(u.Host) {
			k.bad(tree.Index("serve.origins", i), "write it as a browser sends it, such as https://tools.example.com",
				"'%s' is not the origin of a page", o)
		}
	}
	for _, name := range k.order["serve.auth.tokens"] {
		p := "serve.auth.tokens." + name
		switch {
		case name == string(tenon.PrincipalLocal):
			k.bad(p, "write it as serve.auth.secret", "'local' is you")
		case !tree.IsName(name):
			k.bad(p, "", "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -")
		}
	}
	k.serveOAuth()
	if o := k.c.Telemetry.OTLP; o != "" {
		if u, err := url.Parse(o); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			k.bad("telemetry.otlp", "such as http://127.0.0.1:4318", "not the address of a collector")
		} else {
			k.encrypted("telemetry.otlp", "otlp", u)
		}
	}
	if k.has("serve.agent") && !slices.Contains(k.order["agents"], s.Agent) &&
		(s.Agent != "default" || len(k.order["agents"]) > 0) {
		k.bad("serve.agent", k.known("agents"), "no agent '%s'", s.Agent)
	}
}
