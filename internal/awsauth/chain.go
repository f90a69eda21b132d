package awsauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// The limits of the chain.
const (
	renewBefore = 5 * time.Minute // credentials are renewed this long before they expire
	fetchTime   = 30 * time.Second
	localTime   = 2 * time.Second // time limit for requests to the addresses of a container or an instance
	maxAnswer   = 1 << 20         // bytes of an answer, and of a file
	maxSources  = 5               // profiles that refer to each other
)

// Config configures a [Chain].
type Config struct {
	// Profile is a profile of the shared files. If set, the keys in the environment are not used.
	Profile string
	// Region is the region of the requests. If empty, the region of the environment or of the profile is used.
	Region string
	// LookupEnv reads environment variables. If nil, it is os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Home is the user's home directory. If empty, it is HOME or USERPROFILE of the environment.
	Home string
	// Transport sends the requests for credentials. If nil, it is a transport that keeps no connections, and uses no
	// proxy for addresses of this machine's network.
	Transport http.RoundTripper
	// Now is the clock. If nil, it is time.Now.
	Now func() time.Time
}

// Chain finds credentials and keeps them until shortly before they expire. It is safe for concurrent use.
type Chain struct {
	cfg  Config
	http *http.Client

	mu   sync.Mutex // held while credentials are fetched
	kept Credentials
}

// New returns the chain of a configuration. It does not read any credentials yet.
func New(cfg Config) *Chain {
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = os.LookupEnv
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if v, ok := cfg.LookupEnv(name); ok && cfg.Home == "" {
			cfg.Home = v
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives, t.Proxy = true, proxy
		cfg.Transport = t
	}
	return &Chain{cfg: cfg, http: &http.Client{Transport: cfg.Transport, Timeout: fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// proxy returns the proxy of the environment for a request. It returns nil for link-local addresses.
func proxy(r *http.Request) (*url.URL, error) {
	if ip := net.ParseIP(r.URL.Hostname()); ip != nil && ip.IsLinkLocalUnicast() {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// Credentials returns valid credentials. Errors: auth_required, with the sources that were tried or the one that
// failed.
func (c *Chain) Credentials(ctx context.Context) (Credentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept; k.AccessKey != "" && (k.Expires.IsZero() || c.cfg.Now().Add(renewBefore).Before(k.Expires)) {
		return k, nil
	}
	got, err := c.find(ctx)
	if err != nil {
		return Credentials{}, tenon.Errorf(tenon.CodeAuth, "AWS credentials: %w", err)
	}
	c.kept = got
	return got, nil
}

// Forget drops credentials that a service refused, so that the next request reads or fetches them again.
func (c *Chain) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = Credentials{}
}

// Region returns the region of the configuration, the environment or the profile. Errors: config.
func (c *Chain) Region() (string, error) {
	if c.cfg.Region != "" {
		return c.cfg.Region, nil
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if v := c.env(name); v != "" {
			return v, nil
		}
	}
	files, err := c.shared()
	if err != nil {
		return "", tenon.Errorf(tenon.CodeConfig, "AWS region: %w", err)
	}
	if r := files.profile(c.profile())["region"]; r != "" {
		return r, nil
	}
	return "", tenon.Errorf(tenon.CodeConfig, "there is no AWS region: AWS_REGION and the profile '%s' have none",
		tenon.Visible(c.profile()))
}

func (c *Chain) env(name string) string {
	v, ok := c.cfg.LookupEnv(name)
	if !ok {
		return ""
	}
	return v
}

// profile returns the name of the profile in use.
func (c *Chain) profile() string {
	for _, name := range []string{c.cfg.Profile, c.env("AWS_PROFILE"), c.env("AWS_DEFAULT_PROFILE")} {
		if name != "" {
			return name
		}
	}
	return "default"
}

// errNone means that a source is not configured.
var errNone = errors.New("none")

// find tries the sources in order. If a source is configured but fails, find returns its error. The next source could
// belong to another account.
func (c *Chain) find(ctx context.Context) (Credentials, error) {
	sources := []func(context.Context) (Credentials, error){c.fromEnv, c.fromEnvToken, c.fromProfile,
		c.fromContainer, c.fromInstance}
	if c.cfg.Profile != "" {
		sources = sources[2:3]
	}
	for _, source := range sources {
		got, err := source(ctx)
		if !errors.Is(err, errNone) {
			return got, err
		}
	}
	if c.cfg.Profile != "" {
		return Credentials{}, fmt.Errorf("the profile '%s' has none, or is in no file; check ~/.aws/config and "+
			"~/.aws/credentials", tenon.Visible(c.cfg.Profile))
	}
	return Credentials{}, fmt.Errorf("none in the environment (AWS_ACCESS_KEY_ID), in the profile '%s', in a "+
		"container or of an instance; run `aws configure sso`, or set AWS_PROFILE or AWS_ACCESS_KEY_ID",
		tenon.Visible(c.profile()))
}

func (c *Chain) fromEnv(context.Context) (Credentials, error) {
	k := Credentials{AccessKey: c.env("AWS_ACCESS_KEY_ID"), Secret: tenon.NewSecret(c.env("AWS_SECRET_ACCESS_KEY")),
		Token: tenon.NewSecret(c.env("AWS_SESSION_TOKEN"))}
	switch {
	case k.AccessKey == "" && k.Secret.IsZero():
		return k, errNone
	case k.AccessKey == "" || k.Secret.IsZero():
		return k, errors.New("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both, or none")
	}
	return k, nil
}

func (c *Chain) fromEnvToken(ctx context.Context) (Credentials, error) {
	file, role := c.env("AWS_WEB_IDENTITY_TOKEN_FILE"), c.env("AWS_ROLE_ARN")
	if file == "" || role == "" {
		return Credentials{}, errNone
	}
	return c.webIdentity(ctx, file, role, c.env("AWS_ROLE_SESSION_NAME"), "")
}

// fromProfile reads the profile in use.
func (c *Chain) fromProfile(ctx context.Context) (Credentials, error) {
	files, err := c.shared()
	if err != nil {
		return Credentials{}, err
	}
	return c.ofProfile(ctx, files, c.profile(), maxSources)
}

// ofProfile returns the credentials of a profile. left bounds how many further profiles may be followed.
func (c *Chain) ofProfile(ctx context.Context, files sections, name string, left int) (Credentials, error) {
	p := files.profile(name)
	switch {
	case p == nil:
		return Credentials{}, errNone
	case left == 0:
		return Credentials{}, fmt.Errorf("profile '%s': more than %d profiles refer to each other", name, maxSources)
	case p["role_arn"] != "" && p["web_identity_token_file"] != "":
		return c.webIdentity(ctx, p["web_identity_token_file"], p["role_arn"], p["role_session_name"], p["region"])
	case p["role_arn"] != "" && (p["source_profile"] != "" || p["credential_source"] != ""):
		return c.assume(ctx, files, name, left)
	case p["aws_access_key_id"] != "":
		return Credentials{AccessKey: p["aws_access_key_id"], Secret: tenon.NewSecret(p["aws_secret_access_key"]),
			Token: tenon.NewSecret(p["aws_session_token"])}, nil
	case p["sso_account_id"] != "" && p["sso_role_name"] != "":
		return c.signedIn(ctx, files, name)
	case p["credential_process"] != "":
		return c.process(ctx, p["credential_process"])
	}
	return Credentials{}, errNone
}

// home replaces a leading ~ in a path.
func (c *Chain) home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(c.cfg.Home, rest)
	}
	return path
}
