package cloudtoken

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// entraResource is the resource of all Azure AI services, including Azure OpenAI.
const entraResource = "https://cognitiveservices.azure.com"

// errNone means that a source is not configured.
var errNone = errors.New("none")

// NewEntra returns the source of tokens of Microsoft Entra for Azure's AI services. It does not read any credentials
// yet.
func NewEntra(cfg Config) *Source {
	s := newSource("Entra credentials", cfg)
	s.fetch = s.entra
	return s
}

// EntraServes reports whether tokens of Entra may be sent to a host.
func EntraServes(host string) bool {
	return under(host, "azure.com", "azure.us", "azure.cn")
}

// entra tries the sources in order. If a source is configured but fails, entra returns its error.
func (s *Source) entra(ctx context.Context) (string, time.Time, error) {
	sources := []func(context.Context) (string, time.Time, error){s.client, s.service, s.machine, s.command}
	for _, source := range sources {
		token, expires, err := source(ctx)
		if !errors.Is(err, errNone) {
			return token, expires, err
		}
	}
	return "", time.Time{}, errors.New("none in the environment (AZURE_TENANT_ID, AZURE_CLIENT_ID and " +
		"AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE), of a managed identity, or of the az command; " +
		"run `az login`")
}

// answer is a token in a response. It covers the forms of all sources. Some sources write numbers as texts.
type answer struct {
	Token     string      `json:"access_token"`
	ExpiresIn json.Number `json:"expires_in"`
	ExpiresOn json.Number `json:"expires_on"`
}

func (a *answer) token(now time.Time, from string) (string, time.Time, error) {
	if a.Token == "" {
		return "", time.Time{}, fmt.Errorf("%s: the answer has no token", from)
	}
	if n, err := a.ExpiresOn.Int64(); err == nil && n > 0 {
		return a.Token, time.Unix(n, 0), nil
	}
	n, err := a.ExpiresIn.Int64()
	if err != nil || n <= 0 {
		n = 600
	}
	return a.Token, now.Add(time.Duration(n) * time.Second), nil
}

// client exchanges a client secret or a federated token.
func (s *Source) client(ctx context.Context) (string, time.Time, error) {
	tenant, id := s.env("AZURE_TENANT_ID"), s.env("AZURE_CLIENT_ID")
	secret, file := s.env("AZURE_CLIENT_SECRET"), s.env("AZURE_FEDERATED_TOKEN_FILE")
	if tenant == "" || id == "" || secret == "" && file == "" {
		return "", time.Time{}, errNone
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "scope": {entraResource + "/.default"}}
	if secret != "" {
		form.Set("client_secret", secret)
	} else {
		f, err := os.Open(file)
		if err != nil {
			return "", time.Time{}, fmt.Errorf("AZURE_FEDERATED_TOKEN_FILE: %w", err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxAnswer))
		if err != nil {
			return "", time.Time{}, fmt.Errorf("AZURE_FEDERATED_TOKEN_FILE: %w", err)
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", strings.TrimSpace(string(data)))
	}
	base := cmp.Or(s.env("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com")
	u := strings.TrimRight(base, "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u, strings.NewReader(form.Encode()))
	if err != nil || r.URL.Scheme != "https" && !under(r.URL.Hostname()) {
		return "", time.Time{}, errors.New("AZURE_AUTHORITY_HOST is not an https address")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var a answer
	if err := s.ask(r, fetchTime, &a); err != nil {
		return "", time.Time{}, err
	}
	return a.token(s.cfg.Now(), r.URL.Host)
}

// service asks the managed identity of a service, such as App Service or a container app.
func (s *Source) service(ctx context.Context) (string, time.Time, error) {
	endpoint, header := s.env("IDENTITY_ENDPOINT"), s.env("IDENTITY_HEADER")
	if endpoint == "" || header == "" {
		return "", time.Time{}, errNone
	}
	return s.identity(ctx, endpoint, "2019-08-01", "X-Identity-Header", header, fetchTime)
}

// machine asks the managed identity of a virtual machine. If the address does not respond, this machine is not one.
func (s *Source) machine(ctx context.Context) (string, time.Time, error) {
	const endpoint = "http://169.254.169.254/metadata/identity/oauth2/token"
	token, expires, err := s.identity(ctx, endpoint, "2018-02-01", "Metadata", "true", localTime)
	if err != nil && ctx.Err() == nil {
		err = errNone
	}
	return token, expires, err
}

func (s *Source) identity(ctx context.Context, endpoint, version, header, value string, limit time.Duration,
) (string, time.Time, error) {
	q := url.Values{"resource": {entraResource}, "api-version": {version}}
	if id := s.env("AZURE_CLIENT_ID"); id != "" {
		q.Set("client_id", id)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"?"+q.Encode(), nil)
	if err != nil {
		return "", time.Time{}, errors.New("IDENTITY_ENDPOINT is not an address")
	}
	r.Header.Set(header, value)
	var a answer
	if err := s.ask(r, limit, &a); err != nil {
		return "", time.Time{}, fmt.Errorf("managed identity: %w", err)
	}
	return a.token(s.cfg.Now(), r.URL.Host)
}

// command asks the az command, if it is installed.
func (s *Source) command(ctx context.Context) (string, time.Time, error) {
	path, err := exec.LookPath("az")
	if err != nil {
		return "", time.Time{}, errNone
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "account", "get-access-token", "--resource", entraResource, "-o", "json")
	cmd.WaitDelay = time.Second
	var out, why bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &why
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(why.String()), "\n")
		first = tenon.Visible(first[:min(len(first), 300)])
		return "", time.Time{}, fmt.Errorf("az account get-access-token: %s", first)
	}
	var a struct {
		Token   string      `json:"accessToken"`
		Expires json.Number `json:"expires_on"`
	}
	if json.Unmarshal(out.Bytes(), &a) != nil || a.Token == "" {
		return "", time.Time{}, errors.New("az account get-access-token printed no token")
	}
	n, err := strconv.ParseInt(a.Expires.String(), 10, 64)
	if err != nil {
		return a.Token, s.cfg.Now().Add(2 * renewBefore), nil
	}
	return a.Token, time.Unix(n, 0), nil
}
