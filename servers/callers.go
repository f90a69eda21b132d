package servers

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// CallerCredentials says which credentials a request may contain. They replace the credentials of the entry, so that
// the caller uses the server under its own account.
type CallerCredentials struct {
	// Whether to accept a bearer token, which replaces `auth`.
	Bearer bool `yaml:"bearer" default:"false"`
	// Names of headers that replace headers of the entry or are added to them.
	Headers []string `yaml:"headers" default:"[]"`
	// stdio: names of accepted variables. The caller gets a separate process.
	Env []string `yaml:"env" default:"[]"`
	// true: every principal but you signs in to the server with OAuth for itself. Its first call through the gateway
	// gives its client the address of a page of tenon for this.
	SignIn bool `yaml:"sign_in" default:"false"`
	// true: the access token with which a client opens the gateway (`serve.auth.oauth`) is exchanged at `auth.issuer`
	// for a token for the server (RFC 8693), in the name of `auth.client_id`. `auth.issuer` must have issued it. The
	// server never gets the client's token.
	Exchange bool `yaml:"exchange" default:"false"`
	// exchange: the audience to ask for, in addition to the server's URL.
	ExchangeAudience string `yaml:"exchange_audience"`
	// true: a caller without credentials, from its request or from `principals`, is refused; only you use the
	// credentials of the entry. false: it uses the credentials of the entry.
	Required bool `yaml:"required" default:"false"`
}

// Own contains the credentials and settings of one principal at a server. They override the entry's.
type Own struct {
	// Authentication of the principal. It replaces the entry's auth; not oauth.
	Auth Auth `yaml:"auth"`
	// Headers that replace headers of the entry or are added to them.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// stdio: variables for a separate process.
	Env map[string]string `yaml:"env" default:"{}"`
}

// Brought contains the credentials that a request contains for one server. They are secrets, so that none of them is
// ever printed.
type Brought struct {
	Bearer  tenon.Secret            `json:"bearer"`
	Headers map[string]tenon.Secret `json:"headers"`
	Env     map[string]tenon.Secret `json:"env"`
}

const (
	leastBearer = 8       // characters; a shorter value could not be masked
	mostBrought = 8 << 10 // bytes of one value
)

// Accept converts the credentials of a request to an overlay for the server with this name. Errors contain no values:
// denied if the entry does not allow such credentials, invalid.
func (c Config) Accept(name string, b Brought) (Overlay, error) {
	o := Overlay{}
	allow := c.CallerCredentials
	refuse := func(what, key string) (Overlay, error) {
		return Overlay{}, tenon.Errorf(tenon.CodeDenied,
			"server '%s' takes no %s of a request; servers.%s.caller_credentials.%s allows it", name, what, name, key)
	}
	bad := func(what, why string) (Overlay, error) {
		return Overlay{}, tenon.Errorf(tenon.CodeInvalid, "the %s for server '%s' %s", what, name, why)
	}
	if token := b.Bearer.Reveal(); token != "" {
		switch {
		case !allow.Bearer:
			return refuse("bearer token", "bearer")
		case len(token) < leastBearer:
			return bad("bearer token", "has less than 8 characters, so that it could not be masked")
		case len(token) > mostBrought ||
			strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
			return bad("bearer token", "must be visible ASCII of at most 8192 bytes")
		}
		o.Auth = Auth{Type: AuthBearer, Secret: b.Bearer}
	}
	for k, v := range b.Headers {
		own := ""
		for _, h := range allow.Headers {
			if strings.EqualFold(h, k) {
				own = h
			}
		}
		if own == "" {
			return refuse("header '"+tenon.Visible(k)+"'", "headers")
		}
		if text := v.Reveal(); len(text) > mostBrought ||
			strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			return bad("header "+own, "must be ASCII without control characters of at most 8192 bytes")
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		if _, twice := o.Headers[own]; twice {
			return bad("header "+own, "is there twice")
		}
		o.Headers[own] = v.Reveal()
	}
	for k, v := range b.Env {
		if !slices.Contains(allow.Env, k) {
			return refuse("variable '"+tenon.Visible(k)+"'", "env")
		}
		if text := v.Reveal(); len(text) > mostBrought || strings.ContainsRune(text, 0) {
			return bad("variable "+k, "must have no NUL and at most 8192 bytes")
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[k] = v.Reveal()
	}
	if o.IsZero() {
		return bad("credentials", "are empty: write bearer, headers or env")
	}
	return o, nil
}

// TakesCallers reports whether callers can use their own credentials at the server.
func (c Config) TakesCallers() bool {
	a := c.CallerCredentials
	return a.Bearer || len(a.Headers) > 0 || len(a.Env) > 0 || a.Required || a.SignIn || a.Exchange ||
		len(c.Principals) > 0
}
