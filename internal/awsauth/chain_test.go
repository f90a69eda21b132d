package awsauth

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// web answers requests by method, host and path, and records them.
type web struct {
	answers map[string]string // "GET host/path" → body, or "HTTP 401: body"
	seen    []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Method + " " + r.URL.Host + r.URL.Path
	line := key
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		line += " " + string(b)
	}
	for _, h := range []string{"Authorization", "X-Amz-Sso_bearer_token", "X-Aws-Ec2-Metadata-Token"} {
		if v := r.Header.Get(h); v != "" {
			line += " " + strings.SplitN(v, "/", 2)[0]
		}
	}
	w.seen = append(w.seen, line)
	body, ok := w.answers[key]
	status := http.StatusOK
	switch {
	case !ok:
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	case strings.HasPrefix(body, "HTTP "):
		if _, err := fmt.Sscanf(body, "HTTP %d:", &status); err != nil {
			return nil, err
		}
		_, body, _ = strings.Cut(body, ": ")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

const (
	assumed = `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ROLE</AccessKeyId>` +
		`<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2015-08-30T13:36:00Z</Expiration>` +
		`</Credentials></AssumeRoleResult></AssumeRoleResponse>`
	identified = `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>` +
		`<AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>` +
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
	given   = `{"AccessKeyId":"META","SecretAccessKey":"s","Token":"t","Expiration":"2015-08-30T13:36:00Z"}`
	ssoRole = `{"roleCredentials":{"accessKeyId":"SSO","secretAccessKey":"s","sessionToken":"t","expiration":1440941760000}}`
)

type chainCase struct {
	env     map[string]string
	files   map[string]string
	answers map[string]string
	profile string
	want    string // the access key and the requests, or a part of the error
}

// Test_MD10_CredentialChain checks each source, their order, and the errors of sources that are set up wrongly.
func Test_MD10_CredentialChain(t *testing.T) {
	const session = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json"
	for name, c := range map[string]chainCase{
		"none":             {nil, nil, nil, "", "none in the environment (AWS_ACCESS_KEY_ID), in the profile 'default'"},
		"environment":      {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s"}, nil, nil, "", "ENV"},
		"half environment": {map[string]string{"AWS_ACCESS_KEY_ID": "ENV"}, nil, nil, "", "only one of AWS_ACCESS_KEY_ID"},
		"environment before profile": {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s"},
			map[string]string{".aws/credentials": "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n"}, nil, "", "ENV"},
		"named profile before environment": {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s"},
			map[string]string{".aws/credentials": "[work]\naws_access_key_id = FILE # mine\naws_secret_access_key=s\n"}, nil,
			"work", "FILE"},
		"named profile without file": {nil, nil, nil, "work", "the profile 'work' has none, or is in no file"},
		"web identity": {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "~/token", "AWS_ROLE_ARN": "arn:r", "AWS_REGION": "eu-west-1"},
			map[string]string{"token": "jwt\n"}, map[string]string{"POST sts.eu-west-1.amazonaws.com/": identified}, "",
			"WEB POST sts.eu-west-1.amazonaws.com/ Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Ar&RoleSessionName=tenon&Version=2011-06-15&WebIdentityToken=jwt"},
		"role": {nil, map[string]string{
			".aws/config":      "[profile work]\nrole_arn = arn:r\nsource_profile = base\nexternal_id=x\nregion=us-east-2\n",
			".aws/credentials": "[base]\naws_access_key_id=BASE\naws_secret_access_key=s\n"},
			map[string]string{"POST sts.us-east-2.amazonaws.com/": assumed}, "work",
			"ROLE POST sts.us-east-2.amazonaws.com/ Action=AssumeRole&ExternalId=x&RoleArn=arn%3Ar&RoleSessionName=tenon&Version=2011-06-15 AWS4-HMAC-SHA256 Credential=BASE"},
		"role is refused": {nil, map[string]string{
			".aws/config":      "[profile work]\nrole_arn=arn:r\nsource_profile=base\n",
			".aws/credentials": "[base]\naws_access_key_id=BASE\naws_secret_access_key=s\n"},
			map[string]string{"POST sts.us-east-1.amazonaws.com/": "HTTP 403: <ErrorResponse><Error><Message>not allowed</Message></Error></ErrorResponse>"},
			"work", "role arn:r of the profile 'work': sts.us-east-1.amazonaws.com answered with HTTP 403: not allowed"},
		"roles in a circle": {nil, map[string]string{
			".aws/config": "[profile a]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\nsource_profile=a\n"}, nil, "a",
			"more than 5 profiles refer to each other"},
		"code for a role": {nil, map[string]string{".aws/config": "[profile a]\nrole_arn=r\nsource_profile=a\nmfa_serial=m\n"},
			nil, "a", "asks for a code (mfa_serial)"},
		"sign-in": {nil, map[string]string{
			".aws/config": "[sso-session corp]\nsso_region=us-west-2\nsso_start_url=https://c/start\n" +
				"[profile work]\nsso_session=corp\nsso_account_id=1\nsso_role_name=dev\n",
			session: `{"accessToken":"tok","expiresAt":"2015-08-30T13:36:00Z"}`},
			map[string]string{"GET portal.sso.us-west-2.amazonaws.com/federation/credentials": ssoRole}, "work",
			"SSO GET portal.sso.us-west-2.amazonaws.com/federation/credentials tok"},
		"sign-in that is renewed": {nil, map[string]string{
			".aws/config": "[sso-session corp]\nsso_region=us-west-2\nsso_start_url=https://c/start\n" +
				"[profile work]\nsso_session=corp\nsso_account_id=1\nsso_role_name=dev\n",
			session: `{"accessToken":"old","expiresAt":"2015-08-30T12:00:00Z","refreshToken":"r","clientId":"i","clientSecret":"c"}`},
			map[string]string{"GET portal.sso.us-west-2.amazonaws.com/federation/credentials": ssoRole,
				"POST oidc.us-west-2.amazonaws.com/token": `{"accessToken":"new","expiresIn":3600}`}, "work",
			`SSO POST oidc.us-west-2.amazonaws.com/token {"clientId":"i","clientSecret":"c","grantType":"refresh_token","refreshToken":"r"}` +
				` GET portal.sso.us-west-2.amazonaws.com/federation/credentials new`},
		"sign-in that has expired": {nil, map[string]string{
			".aws/config": "[profile work]\nsso_region=us-west-2\nsso_start_url=corp\nsso_account_id=1\nsso_role_name=dev\n",
			session:       `{"accessToken":"old","expiresAt":"2015-08-30T12:00:00Z"}`}, nil, "work",
			"run `aws sso login --profile work`"},
		"container": {map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "auth"},
			nil, map[string]string{"GET 169.254.170.2/v2/x": given}, "", "META GET 169.254.170.2/v2/x auth"},
		"container elsewhere": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/x"}, nil, nil, "",
			"is neither https nor an address of this machine"},
		"instance": {nil, nil, map[string]string{
			"PUT 169.254.169.254/latest/api/token":                               "imds",
			"GET 169.254.169.254/latest/meta-data/iam/security-credentials/":     "role",
			"GET 169.254.169.254/latest/meta-data/iam/security-credentials/role": given}, "",
			"META PUT 169.254.169.254/latest/api/token GET 169.254.169.254/latest/meta-data/iam/security-credentials/ imds " +
				"GET 169.254.169.254/latest/meta-data/iam/security-credentials/role imds"},
		"instance is off": {map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, nil,
			map[string]string{"PUT 169.254.169.254/latest/api/token": "imds"}, "", "none in the environment"},
	} {
		t.Run(name, func(t *testing.T) { checkChain(t, c) })
	}
}

// checkChain reads credentials under the environment, the files and the answers of a case.
func checkChain(t *testing.T, c chainCase) {
	home := t.TempDir()
	for path, text := range c.files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &web{answers: c.answers}
	chain := New(Config{Profile: c.profile, Home: home, Transport: w, Now: func() time.Time { return at },
		LookupEnv: func(k string) (string, bool) { v, ok := c.env[k]; return v, ok }})
	got, err := chain.Credentials(t.Context())
	text := strings.Join(append([]string{got.AccessKey}, w.seen...), " ")
	if err != nil {
		if tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), c.want) {
			t.Fatalf("%s: %v\nwant %s", tenon.ErrorCode(err), err, c.want)
		}
		return
	}
	if text != c.want {
		t.Errorf("got  %s\nwant %s", text, c.want)
	}
}

// Test_MD10_CredentialsAreKept checks that credentials are fetched again shortly before they expire, and after a
// service refused them.
func Test_MD10_CredentialsAreKept(t *testing.T) {
	now := at
	w := &web{answers: map[string]string{"GET 127.0.0.1:9/c": given}}
	chain := New(Config{Home: t.TempDir(), Transport: w, Now: func() time.Time { return now },
		LookupEnv: func(k string) (string, bool) {
			return "http://127.0.0.1:9/c", k == "AWS_CONTAINER_CREDENTIALS_FULL_URI"
		}})
	for i, step := range []struct {
		after  time.Duration
		forget bool
		asked  int
	}{{0, false, 1}, {54 * time.Minute, false, 1}, {56 * time.Minute, false, 2}, {0, false, 2}, {0, true, 3}} {
		now = at.Add(step.after)
		if step.forget {
			chain.Forget()
		}
		if _, err := chain.Credentials(context.Background()); err != nil {
			t.Fatal(err)
		}
		if len(w.seen) != step.asked {
			t.Errorf("step %d: %d requests, want %d", i, len(w.seen), step.asked)
		}
	}
}

// Test_MD10_CredentialProcess runs the program of a profile.
func Test_MD10_CredentialProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program of the test is a shell script")
	}
	for command, want := range map[string]string{
		`echo '{"Version":1,"AccessKeyId":"PROC","SecretAccessKey":"s"}'`: "PROC",
		`echo nothing`: "printed no credentials", `exit 3`: "exit status 3",
	} {
		home := t.TempDir()
		path := filepath.Join(home, "config")
		if err := os.WriteFile(path, []byte("[default]\ncredential_process = "+command+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		chain := New(Config{Home: home, Transport: &web{}, LookupEnv: func(k string) (string, bool) { return path, k == "AWS_CONFIG_FILE" }})
		got, err := chain.Credentials(t.Context())
		if got.AccessKey != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s %v", command, got.AccessKey, err)
		}
	}
}

// FuzzSharedFile checks that no shared file makes the reader panic.
func FuzzSharedFile(f *testing.F) {
	f.Add([]byte("[profile a]\nregion = x # y\n s3 =\n  a = b\n[default\n=\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, credentials bool) {
		for name, keys := range parse(data, credentials) {
			for k := range keys {
				if k != strings.ToLower(k) {
					t.Errorf("%s: key %s", name, k)
				}
			}
		}
	})
}
