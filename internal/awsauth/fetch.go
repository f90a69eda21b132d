package awsauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// do sends a request and returns the body of a successful answer.
func (c *Chain) do(r *http.Request, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	resp, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.URL.Host, err)
	case resp.StatusCode != http.StatusOK:
		return nil, &statusError{r.URL.Host, resp.StatusCode, reason(data)}
	}
	return data, nil
}

type statusError struct {
	host   string
	status int
	reason string
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("%s answered with HTTP %d", e.host, e.status)
	if e.reason != "" {
		s += ": " + e.reason
	}
	return s
}

// reason reads the message of an AWS error: XML from STS, JSON from other services.
func reason(data []byte) string {
	var x struct {
		Message string `xml:"Error>Message"`
	}
	var j struct {
		Message     string `json:"message"`
		Description string `json:"error_description"`
	}
	switch {
	case xml.Unmarshal(data, &x) == nil && x.Message != "":
		return tenon.Visible(x.Message)
	case json.Unmarshal(data, &j) == nil:
		return tenon.Visible(j.Message + j.Description)
	}
	return ""
}

// domain returns the domain of a region's services.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// Host returns the host of a service in a region.
func Host(service, region string) string { return service + "." + region + "." + domain(region) }

// sts sends a request to the Security Token Service. A request without credentials is not signed.
func (c *Chain) sts(ctx context.Context, region string, form url.Values, signer *Credentials) (Credentials, error) {
	if region == "" {
		region, _ = c.Region()
	}
	region = cmp.Or(region, "us-east-1")
	form.Set("Version", "2011-06-15")
	body := form.Encode()
	address := "https://" + Host("sts", region) + "/"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return Credentials{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if signer != nil {
		sum := sha256.Sum256([]byte(body))
		Sign(r, hex.EncodeToString(sum[:]), *signer, region, "sts", c.cfg.Now())
	}
	data, err := c.do(r, fetchTime)
	if err != nil {
		return Credentials{}, err
	}
	type found struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      string
	}
	var x struct {
		Role  found `xml:"AssumeRoleResult>Credentials"`
		Token found `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if err := xml.Unmarshal(data, &x); err != nil {
		return Credentials{}, fmt.Errorf("%s: the answer is not XML", r.URL.Host)
	}
	f := x.Role
	if f.AccessKeyID == "" {
		f = x.Token
	}
	if f.AccessKeyID == "" {
		return Credentials{}, fmt.Errorf("%s: the answer has no credentials", r.URL.Host)
	}
	return keys(f.AccessKeyID, f.SecretAccessKey, f.SessionToken, f.Expiration), nil
}

const sessionName = "tenon"

func (c *Chain) webIdentity(ctx context.Context, file, role, session, region string) (Credentials, error) {
	token, err := readFile(c.home(file))
	if err != nil {
		return Credentials{}, fmt.Errorf("web identity token: %w", err)
	}
	session = cmp.Or(session, sessionName)
	got, err := c.sts(ctx, region, url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "RoleArn": {role},
		"RoleSessionName": {session}, "WebIdentityToken": {strings.TrimSpace(string(token))}}, nil)
	if err != nil {
		return got, fmt.Errorf("role %s with a web identity: %w", tenon.Visible(role), err)
	}
	return got, nil
}

// assume takes the role of a profile with the credentials of its source.
func (c *Chain) assume(ctx context.Context, files sections, name string, left int) (Credentials, error) {
	p := files.profile(name)
	var source Credentials
	var err error
	switch from := p["credential_source"]; {
	case p["mfa_serial"] != "":
		return source, fmt.Errorf("profile '%s' asks for a code (mfa_serial), and nobody can be asked for it "+
			"here; sign in with the aws command and name a profile with temporary keys", tenon.Visible(name))
	case p["source_profile"] == name: // its own keys
		source = Credentials{AccessKey: p["aws_access_key_id"], Secret: tenon.NewSecret(p["aws_secret_access_key"]),
			Token: tenon.NewSecret(p["aws_session_token"])}
	case p["source_profile"] != "":
		source, err = c.ofProfile(ctx, files, p["source_profile"], left-1)
	case from == "Environment":
		source, err = c.fromEnv(ctx)
	case from == "EcsContainer":
		source, err = c.fromContainer(ctx)
	case from == "Ec2InstanceMetadata":
		source, err = c.fromInstance(ctx)
	default:
		err = fmt.Errorf("credential_source '%s' is unknown", tenon.Visible(from))
	}
	if err != nil {
		return source, fmt.Errorf("source of the profile '%s': %w", tenon.Visible(name), noSource(err))
	}
	form := url.Values{"Action": {"AssumeRole"}, "RoleArn": {p["role_arn"]}, "RoleSessionName": {sessionName}}
	for param, key := range map[string]string{"RoleSessionName": "role_session_name", "ExternalId": "external_id",
		"DurationSeconds": "duration_seconds"} {
		if p[key] != "" {
			form.Set(param, p[key])
		}
	}
	got, err := c.sts(ctx, p["region"], form, &source)
	if err != nil {
		role := tenon.Visible(p["role_arn"])
		return got, fmt.Errorf("role %s of the profile '%s': %w", role, tenon.Visible(name), err)
	}
	return got, nil
}

func noSource(err error) error {
	if errors.Is(err, errNone) {
		return errors.New("it has no credentials")
	}
	return err
}
