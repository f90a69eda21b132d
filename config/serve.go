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
)

// ListenOff as the value of [Serve.Listen] leaves tenon serve with its socket alone.
const ListenOff = "off"

// The values of [ServeAuth.Type].
const (
	ServeToken = "token"
	ServeOpen  = "none"
)

// Serve says what tenon serve offers over HTTP.
type Serve struct {
	// Address and port to listen on; `off`: only the socket beside the store. Whoever listens beyond this machine should put TLS in front.
	Listen string `yaml:"listen" default:"127.0.0.1:8420"`
	// Whether the workbench, pages for a browser, is served beside the APIs. It works by the native one.
	UI *bool `yaml:"ui" default:"true"`
	// What is served: native is `/api/v1`, researchai `/chat` and `/mcp/…`, openai `/v1/…`.
	APIs []string `yaml:"apis" enum:"native,researchai,openai" default:"all"`
	// Who may ask.
	Auth ServeAuth `yaml:"auth"`
	// Origins of browser pages that may ask beside our own, such as `https://tools.example.com`; their host is taken for a name of ours, as behind a proxy.
	Origins []string `yaml:"origins" default:"[]"`
	// Agent that the researchai API asks.
	Agent string `yaml:"agent" default:"default"`
}

// ServeAuth says who may ask tenon serve over TCP.
type ServeAuth struct {
	// token: every request carries a bearer token. none: whoever reaches the address is you; on loopback only.
	Type string `yaml:"type" enum:"token,none" default:"token"`
	// Your token. Without it one is made at the first start and kept beside the store, in serve.token.
	Secret tenon.Secret `yaml:"secret"`
	// Other principals: name -> token. Each has sessions, runs, grants and budgets of its own; only you may switch servers and read the configuration.
	Tokens map[string]tenon.Secret `yaml:"tokens"`
}

// HasUI reports whether the workbench is served.
func (s Serve) HasUI() bool { return s.UI == nil || *s.UI }

// WithDefaults returns a copy with the values that are absent filled in.
func (s Serve) WithDefaults() Serve {
	if s.UI == nil {
		on := s.HasUI()
		s.UI = &on
	}
	s.Listen = cmp.Or(s.Listen, "127.0.0.1:8420")
	s.Auth.Type = cmp.Or(s.Auth.Type, ServeToken)
	if len(s.APIs) == 0 {
		s.APIs = []string{"native", "researchai", "openai"}
	}
	return s
}

// ServeSecret returns the token of the local user, zero where the configuration
// names none. Errors are those of [Config.Resolve].
func (c *Config) ServeSecret(ctx context.Context) (tenon.Secret, error) {
	return c.serveSecret(ctx, "serve.auth.secret", c.Serve.Auth.Secret)
}

// ServeTokens returns the tokens of the other principals. Errors are those of
// [Config.Resolve].
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

// HasServeSecret reports whether the configuration names the local user's token.
func (c *Config) HasServeSecret() bool {
	_, ok := c.secrets["serve.auth.secret"]
	return ok || !c.Serve.Auth.Secret.IsZero()
}

func (c *Config) serveSecret(ctx context.Context, path string, own tenon.Secret) (tenon.Secret, error) {
	if ref, ok := c.secrets[path]; ok {
		return c.resolve(ctx, ref, path)
	}
	return own, nil // of a Go program, which fills it in itself
}

// CheckListen says what is wrong with an address to listen on, "" if nothing is.
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

// IsLoopback reports whether only this machine reaches an address to listen on.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// serve checks the block of that name, and where telemetry goes.
func (k *checker) serve() {
	s := k.c.Serve
	if why := CheckListen(cmp.Or(s.Listen, ListenOff)); why != "" {
		k.bad("serve.listen", "", "'%s' cannot be listened on: %s", s.Listen, why)
	} else if s.Auth.Type == ServeOpen && s.Listen != "" && s.Listen != ListenOff && !IsLoopback(s.Listen) {
		k.bad("serve.auth.type", "write token, or listen on 127.0.0.1", "none is for loopback only, and serve.listen is %s", s.Listen)
	}
	for i, o := range s.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || o != u.Scheme+"://"+strings.ToLower(u.Host) {
			k.bad(index("serve.origins", i), "write it as a browser sends it, such as https://tools.example.com", "'%s' is not the origin of a page", o)
		}
	}
	for _, name := range k.order["serve.auth.tokens"] {
		p := "serve.auth.tokens." + name
		switch {
		case name == string(tenon.PrincipalLocal):
			k.bad(p, "write it as serve.auth.secret", "'local' is you")
		case !validName(name):
			k.bad(p, "", "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -")
		}
	}
	if o := k.c.Telemetry.OTLP; o != "" {
		if u, err := url.Parse(o); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			k.bad("telemetry.otlp", "such as http://127.0.0.1:4318", "not the address of a collector")
		} else {
			k.encrypted("telemetry.otlp", "otlp", u)
		}
	}
	if k.has("serve.agent") && !slices.Contains(k.order["agents"], s.Agent) && (s.Agent != "default" || len(k.order["agents"]) > 0) {
		k.bad("serve.agent", k.known("agents"), "no agent '%s'", s.Agent)
	}
}
