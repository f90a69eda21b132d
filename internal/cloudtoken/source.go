package cloudtoken

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// The limits of a source.
const (
	renewBefore = 5 * time.Minute
	fetchTime   = 30 * time.Second
	localTime   = 2 * time.Second // time limit for requests to the machine's network
	maxAnswer   = 1 << 20         // bytes of an answer, and of a file
)

// Config configures a source.
type Config struct {
	// LookupEnv reads environment variables. If nil, it is os.LookupEnv. Google's library always reads the environment
	// of the process.
	LookupEnv func(name string) (string, bool)
	// Transport sends the requests for tokens. If nil, it is a transport that keeps no connections, and uses no proxy
	// for link-local addresses.
	Transport http.RoundTripper
	// Now is the clock. If nil, it is time.Now.
	Now func() time.Time
}

// Source returns tokens, and keeps them until shortly before they expire. It is safe for concurrent use.
type Source struct {
	cfg   Config
	http  *http.Client
	name  string // of the cloud, for errors
	fetch func(ctx context.Context) (string, time.Time, error)

	mu      sync.Mutex // held while a token is fetched
	token   tenon.Secret
	expires time.Time
}

func newSource(name string, cfg Config) *Source {
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = os.LookupEnv
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives, t.Proxy = true, proxy
		cfg.Transport = t
	}
	return &Source{cfg: cfg, name: name, http: &http.Client{Transport: cfg.Transport, Timeout: fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// proxy returns the proxy of the environment for a request. It returns nil for link-local addresses.
func proxy(r *http.Request) (*url.URL, error) {
	if ip := net.ParseIP(r.URL.Hostname()); ip != nil && ip.IsLinkLocalUnicast() {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// Token returns a valid token. Errors: auth_required, with the sources that were tried or the one that failed.
func (s *Source) Token(ctx context.Context) (tenon.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.token.IsZero() && (s.expires.IsZero() || s.cfg.Now().Add(renewBefore).Before(s.expires)) {
		return s.token, nil
	}
	token, expires, err := s.fetch(ctx)
	if err != nil {
		return tenon.Secret{}, tenon.Errorf(tenon.CodeAuth, "%s: %w", s.name, err)
	}
	s.token, s.expires = tenon.NewSecret(token), expires
	return s.token, nil
}

// Forget drops a token that a service refused.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = tenon.Secret{}
}

func (s *Source) env(name string) string {
	v, ok := s.cfg.LookupEnv(name)
	if !ok {
		return ""
	}
	return v
}

// ask sends a request and decodes the JSON of a successful answer.
func (s *Source) ask(r *http.Request, limit time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	resp, err := s.http.Do(r.WithContext(ctx))
	if err != nil {
		if ue, ok := err.(*url.Error); ok {
			err = ue.Err
		}
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		var e struct {
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(data, &e) // without a description, only the status is reported
		first, _, _ := strings.Cut(e.Description, "\n")
		return fmt.Errorf("%s answered with HTTP %d %s", r.URL.Host, resp.StatusCode, tenon.Visible(first))
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: the answer is not the JSON of a token", r.URL.Host)
	}
	return nil
}

// under reports whether a host is one of the domains, is below one of them, or is this machine.
func under(host string, domains ...string) bool {
	host = strings.ToLower(host)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}
