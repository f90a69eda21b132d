package cloudtoken

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/tenonhq/tenon"
)

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// Google returns tokens of Application Default Credentials.
type Google struct {
	*Source
	project string // of the credentials; set with the first token
}

// NewGoogle returns the source of a configuration. It does not read any credentials yet.
func NewGoogle(cfg Config) *Google {
	g := &Google{Source: newSource("Google credentials", cfg)}
	g.fetch = g.find
	return g
}

func (g *Google) find(ctx context.Context) (string, time.Time, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, g.http), fetchTime)
	defer cancel()
	c, err := google.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%s; run `gcloud auth application-default login`, or set "+
			"GOOGLE_APPLICATION_CREDENTIALS to a file", firstLine(err))
	}
	t, err := c.TokenSource.Token()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%s; run `gcloud auth application-default login`", firstLine(err))
	}
	g.project = c.ProjectID
	return t.AccessToken, t.Expiry, nil
}

// firstLine returns the first line of an error, because the library appends the whole response of a server.
func firstLine(err error) string {
	var re *oauth2.RetrieveError
	if errors.As(err, &re) && re.ErrorCode != "" {
		return "the token was refused: " + tenon.Visible(strings.TrimSpace(re.ErrorCode+" "+re.ErrorDescription))
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return tenon.Visible(line)
}

// Project returns the project in the environment or of the credentials. It returns "" if there is none. It may fetch a
// token.
func (g *Google) Project(ctx context.Context) (string, error) {
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"} {
		if v := g.env(name); v != "" {
			return v, nil
		}
	}
	if _, err := g.Token(ctx); err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.project, nil
}

// Location returns the location in the environment. If there is none, it returns global.
func (g *Google) Location() string {
	for _, name := range []string{"GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "CLOUD_ML_REGION"} {
		if v := g.env(name); v != "" {
			return v
		}
	}
	return "global"
}

// GoogleServes reports whether tokens of Google may be sent to a host.
func GoogleServes(host string) bool { return under(host, "googleapis.com") }
