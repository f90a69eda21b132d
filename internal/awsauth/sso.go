package awsauth

import (
	"context"
	"crypto/sha1" // the name of a cache file, not a matter of security
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// ssoToken is a file in ~/.aws/sso/cache.
type ssoToken struct {
	AccessToken  string `json:"accessToken"`
	ExpiresAt    string `json:"expiresAt"`
	RefreshToken string `json:"refreshToken"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// signedIn returns credentials of a sign-in with `aws sso login`.
func (c *Chain) signedIn(ctx context.Context, files sections, name string) (Credentials, error) {
	p := files.profile(name)
	region, key := p["sso_region"], p["sso_start_url"]
	if session := p["sso_session"]; session != "" {
		s := files["sso-session "+session]
		region, key = s["sso_region"], session
	}
	again := fmt.Errorf("the sign-in of the profile '%s' has expired or is missing; run `aws sso login --profile %s`",
		tenon.Visible(name), tenon.Visible(name))
	if region == "" || key == "" {
		return Credentials{}, fmt.Errorf("profile '%s' has no sso_region or no sso_start_url", tenon.Visible(name))
	}
	sum := sha1.Sum([]byte(key))
	path := filepath.Join(c.cfg.Home, ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json")
	data, err := readFile(path)
	var t ssoToken
	if err != nil || json.Unmarshal(data, &t) != nil || t.AccessToken == "" {
		return Credentials{}, again
	}
	if end, err := time.Parse(time.RFC3339, t.ExpiresAt); err == nil && c.cfg.Now().Add(time.Minute).After(end) {
		if t, err = c.refresh(ctx, region, path, data, t); err != nil {
			return Credentials{}, fmt.Errorf("%w (%w)", again, err)
		}
	}
	u := "https://" + Host("portal.sso", region) + "/federation/credentials?" + url.Values{
		"account_id": {p["sso_account_id"]}, "role_name": {p["sso_role_name"]}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return Credentials{}, err
	}
	r.Header.Set("X-Amz-Sso_bearer_token", t.AccessToken)
	if data, err = c.do(r, fetchTime); err != nil {
		var s *statusError
		if errors.As(err, &s) && s.status == http.StatusUnauthorized {
			return Credentials{}, again
		}
		return Credentials{}, err
	}
	var answer struct {
		Role struct {
			AccessKeyID     string `json:"accessKeyId"`
			SecretAccessKey string `json:"secretAccessKey"`
			SessionToken    string `json:"sessionToken"`
			Expiration      int64  `json:"expiration"` // milliseconds
		} `json:"roleCredentials"`
	}
	if json.Unmarshal(data, &answer) != nil || answer.Role.AccessKeyID == "" {
		return Credentials{}, fmt.Errorf("%s: the answer has no credentials", r.URL.Host)
	}
	k := keys(answer.Role.AccessKeyID, answer.Role.SecretAccessKey, answer.Role.SessionToken, "")
	k.Expires = time.UnixMilli(answer.Role.Expiration)
	return k, nil
}

// refresh renews the token of a sign-in. It writes the token back to its file, as the aws command does, and keeps the
// other members of the file.
func (c *Chain) refresh(ctx context.Context, region, path string, file []byte, t ssoToken) (ssoToken, error) {
	if t.RefreshToken == "" || t.ClientID == "" {
		return t, errors.New("it cannot be renewed")
	}
	body, err := json.Marshal(map[string]string{"clientId": t.ClientID, "clientSecret": t.ClientSecret,
		"grantType": "refresh_token", "refreshToken": t.RefreshToken})
	if err != nil {
		return t, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+Host("oidc", region)+"/token",
		strings.NewReader(string(body)))
	if err != nil {
		return t, err
	}
	r.Header.Set("Content-Type", "application/json")
	data, err := c.do(r, fetchTime)
	if err != nil {
		return t, err
	}
	var answer struct {
		AccessToken  string `json:"accessToken"`
		ExpiresIn    int    `json:"expiresIn"`
		RefreshToken string `json:"refreshToken"`
	}
	if json.Unmarshal(data, &answer) != nil || answer.AccessToken == "" {
		return t, fmt.Errorf("%s: the answer has no token", r.URL.Host)
	}
	t.AccessToken = answer.AccessToken
	members := map[string]any{}
	if err := json.Unmarshal(file, &members); err != nil {
		return t, nil // not reached: the file was read before
	}
	members["accessToken"] = answer.AccessToken
	members["expiresAt"] = c.cfg.Now().UTC().Add(time.Duration(answer.ExpiresIn) * time.Second).Format(time.RFC3339)
	if answer.RefreshToken != "" {
		members["refreshToken"] = answer.RefreshToken
	}
	if data, err = json.Marshal(members); err != nil {
		return t, err
	}
	if err := wholefile.Write(path, data, os.FileMode(0o600)); err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
