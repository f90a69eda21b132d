package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/cloudtoken"
)

// The values of [Config.Auth].
const (
	AuthKey   = "key"
	AuthEntra = "entra"
)

// openTokens opens the configured source of tokens. The source reads nothing until a token is needed.
func (c *Client) openTokens() {
	cfg := cloudtoken.Config{LookupEnv: c.env.LookupEnv, Transport: c.env.Credentials}
	switch {
	case !c.cfg.APIKey.IsZero():
	case c.cfg.Auth == AuthEntra:
		c.tokens = cloudtoken.NewEntra(cfg)
	case c.provider.Name == providerVertex:
		c.google = cloudtoken.NewGoogle(cfg)
		c.tokens = c.google.Source
	}
}

// authorize adds the headers of the configuration and the credentials to the request of an attempt.
func (c *Client) authorize(req *http.Request, x *Exchange) error {
	key := c.key.Load().Reveal()
	switch {
	case c.tokens != nil:
		host := req.URL.Hostname()
		if c.google != nil && !cloudtoken.GoogleServes(host) || c.google == nil && !cloudtoken.EntraServes(host) {
			return tenon.Errorf(tenon.CodeConfig, "%s does not belong to the cloud whose token it would get; "+
				"correct %s, or set %s", tenon.Visible(host), c.cfg.key("base_url"), c.cfg.key("api_key"))
		}
		token, err := c.tokens.Token(req.Context())
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	case x.Key != nil && key != "":
		x.Key(req.Header, key)
	}
	betas := req.Header.Get(betaHeader)
	for k, v := range c.cfg.Headers {
		req.Header.Set(k, v)
	}
	if own := req.Header.Get(betaHeader); betas != "" && own != betas {
		req.Header.Set(betaHeader, own+","+betas)
	}
	if x.Authorize != nil {
		return x.Authorize(req, x.Body)
	}
	return nil
}

// betaHeader names features of Anthropic's API that a request uses. The configuration and the provider's tools add to
// it.
const betaHeader = "Anthropic-Beta"

// renew drops credentials that the provider refused. It reports whether another attempt would use different
// credentials.
func (c *Client) renew(ctx context.Context, x *Exchange, refusal *Failure) bool {
	switch {
	case x.Renew != nil:
		return x.Renew(refusal)
	case refusal.Status == http.StatusForbidden: // the provider knows these credentials
		return false
	case c.tokens != nil:
		c.tokens.Forget()
		return true
	case c.env.Key == nil:
		return false
	}
	key, err := c.env.Key(ctx)
	if err != nil || key.IsZero() || key.Equal(*c.key.Load()) {
		return false // the refusal says more than an error of the source
	}
	c.key.Store(&key)
	return true
}

// unauthorized returns the failure of an attempt that has no credentials.
func unauthorized(ctx context.Context, err error) *Failure {
	if ctx.Err() != nil {
		return ended(ctx.Err())
	}
	var own *tenon.Error
	if errors.As(err, &own) {
		return &Failure{Code: own.Code, Message: own.Message, Remedied: true}
	}
	return &Failure{Code: tenon.CodeAuth, Message: Visible(err.Error()), Remedied: true}
}

// Vertex returns the address and the path of a model of Vertex AI. Errors: config, auth_required.
func (c *Client) Vertex(ctx context.Context, publisher, method string) (base, path string, err error) {
	base, parent, err := c.VertexParent(ctx)
	if err != nil {
		return "", "", err
	}
	path = "/publishers/" + publisher + "/models/" + url.PathEscape(c.cfg.Model) + ":" + method
	if parent != "" {
		path = "/" + parent + path
	}
	return base, "/v1" + path, nil
}

// VertexParent returns the address of Vertex AI, and the location of the model as projects/PROJECT/locations/LOCATION.
// The location is "" with a key of express mode, which implies its project. Errors: config, auth_required.
func (c *Client) VertexParent(ctx context.Context) (base, parent string, err error) {
	base, location := c.vertexBase()
	project := c.cfg.Project
	if project == "" && c.google != nil {
		if project, err = c.google.Project(ctx); err != nil {
			return "", "", tenon.Errorf(tenon.ErrorCode(err), "%s: %w", c.Name(), err)
		}
		if project == "" {
			return "", "", tenon.Errorf(tenon.CodeConfig, "%s: there is no project: the credentials and "+
				"GOOGLE_CLOUD_PROJECT have none; set %s", c.Name(), c.cfg.key("project"))
		}
	}
	if project != "" {
		parent = "projects/" + url.PathEscape(project) + "/locations/" + location
	}
	return base, parent, nil
}

// cloud returns the source of Google's credentials. With a key, it is only used to read the environment.
func (c *Client) cloud() *cloudtoken.Google {
	if c.google != nil {
		return c.google
	}
	return cloudtoken.NewGoogle(cloudtoken.Config{LookupEnv: c.env.LookupEnv})
}

// vertexHost returns the host of a location: global, a region, or one of the regions of several countries.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}

// checkCloud reports the first wrong value of the keys about clouds: the key and the reason.
func (c Config) checkCloud(p Provider) (key, reason string) {
	plain := func(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-:.") == "" }
	host := ""
	if u, err := url.Parse(c.BaseURL); err == nil {
		host = u.Hostname()
	}
	switch {
	case c.Region != "" && !p.Own:
		return "region", fmt.Sprintf("provider %s has no regions", p.Name)
	case c.Profile != "" && p.Wire != WireBedrock:
		return "profile", fmt.Sprintf("profiles are for provider bedrock, not for %s", p.Name)
	case c.Project != "" && p.Name != providerVertex:
		return "project", fmt.Sprintf("projects are for provider vertex, not for %s", p.Name)
	case !plain(c.Region) || strings.ContainsAny(c.Region, ":."):
		return "region", fmt.Sprintf("'%s' is not a region, such as us-east-1", tenon.Visible(c.Region))
	case !plain(c.Project):
		return "project", fmt.Sprintf("'%s' is not the id of a project", tenon.Visible(c.Project))
	case c.Auth != "" && c.Auth != AuthKey && c.Auth != AuthEntra:
		return "auth", fmt.Sprintf("'%s' is not one of key, entra", tenon.Visible(c.Auth))
	case c.Auth == AuthEntra && !cloudtoken.EntraServes(host):
		return "auth", "tokens of Entra are for addresses of Azure; set base_url to one"
	case c.Auth == AuthEntra && !c.APIKey.IsZero():
		return "auth", "entra needs no api_key; remove one of both"
	}
	return "", ""
}
