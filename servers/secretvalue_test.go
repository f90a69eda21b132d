package servers

import (
	"slices"
	"strings"
	"testing"
)

// TestSecretParts checks the judgement about names, forms and passwords within a value, and that the masked value
// contains none of them.
func TestSecretParts(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"API_KEY", "8f14e45fceea167a", []string{"8f14e45fceea167a"}},
		{"DB_PASSWORD2", "hunter2", []string{"hunter2"}},
		{"API_KEY_1", "hunter2", []string{"hunter2"}},
		{"DB_PASS", "hunter2", []string{"hunter2"}},
		{"dbPass", "hunter2", []string{"hunter2"}},
		{"PASSCODE", "hunter2", []string{"hunter2"}},
		{"JWT", "hunter2", []string{"hunter2"}},
		{"STRIPE_SK", "hunter2", []string{"hunter2"}},
		{"X-API-Key", "hunter2", []string{"hunter2"}},
		{"Authorization", "Bearer abcdefghi", []string{"abcdefghi"}},
		{"CITY", "ghp_0123456789abcdef0123", []string{"ghp_0123456789abcdef0123"}},
		{"DATABASE_URL", "postgres://me:hunter2@db/x", []string{"hunter2", "hunter2"}},
		{"HOME_PAGE", "https://db/x?api_key=hunter2", []string{"hunter2", "hunter2"}},
		{"REDIS_DSN", "me:hunter2@tcp(db:6379)/0", []string{"hunter2"}},
		{"CONNECTION_STRING", "Server=db;User Id=me;Password=hunter2;", []string{"hunter2"}},
		{"STORAGE", "AccountName=a;AccountKey=aGVsbG8=;X=y", []string{"aGVsbG8="}},
		{"DATABASE_URL_PROD", "me:hunter2@tcp(db:6379)/0", []string{"hunter2"}},
		{"X", "redis://:hunter2@cache:6379/0", []string{"hunter2", "hunter2"}},
		{"X", "https://0123456789abcdef01234567@host/1", []string{"0123456789abcdef01234567"}},
		{"X", "-----BEGIN PRIVATE KEY-----\nMII=", []string{"-----BEGIN PRIVATE KEY-----\nMII="}},
		{"DATABASE_URL", "postgres://db/x", nil},
		{"CITY", "Amsterdam", nil},
		{"COMPASS", "north-west", nil},
		{"BYPASS", "everything", nil},
		{"DISK", "sda-something", nil},
		{"SORT_KEY", "created_at", nil},
		{"primaryKey", "customer_id", nil},
		{"MONKEY", "capuchin", nil},
		{"USE_KEY", "true", nil},
		{"API_KEY", "${KEY}", nil},
		{"PWD", "/somewhere", nil},
		{"MAIL", "me:you@example.org", nil},
	} {
		got := SecretParts(c.value, c.name)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s=%s: %q, not %q", c.name, c.value, got, c.want)
		}
		masked := MaskValue(c.value, c.name)
		if len(c.want) == 0 && masked != c.value || len(c.want) > 0 && strings.Contains(masked, c.want[0]) {
			t.Errorf("%s=%s is shown as %s", c.name, c.value, masked)
		}
	}
	args := []string{"--api-key", "hunter2", "--token=hunter3", "API_KEY=hunter4", "X-Key: hunter5", "--dsn",
		"me:hunter6@tcp(db)/x", "--city", "Amsterdam"}
	if got := SecretArgs(args); !slices.Equal(got, []string{"hunter2", "hunter3", "hunter4", "hunter5", "hunter6"}) {
		t.Errorf("%q", got)
	}
	if text := strings.Join(MaskArgs(args), " "); strings.Contains(text, "hunter") || !strings.Contains(text, "Amsterdam") {
		t.Error(text)
	}
}

// TestMaskStart checks that a person who decides about a start sees what could run, and no secret.
func TestMaskStart(t *testing.T) {
	args := []string{"--token", "ghp_0123456789abcdef0123", "--api-key=hunter2", "--key", "./evil.sh", "--key", "$(evil)"}
	want := []string{"--token", "***", "--api-key=***", "--key", "./evil.sh", "--key", "$(evil)"}
	if got := MaskStart(args); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestNamesSecret checks the rule for names: RP-15 found secrets in cassettes whose names have a word after key, token
// or secret.
func TestNamesSecret(t *testing.T) {
	for _, name := range []string{"API_KEY_PROD", "TOKEN_PROD", "AUTH_TOKEN_DEV", "SECRET_A", "CLIENT_SECRET_ID",
		"GITHUB_PAT", "PRIVATE_KEY_PEM", "MY_API_KEY", "PASSWORD1", "OPENAI_API_KEY_2", "PGPASSWORD", "DB_PASS",
		"DB_PASS_PROD", "APIKEY", "APIKEY_STAGING", "CREDENTIALS", "PROD_API_KEY_ACME", "SECRET_KEY_BASE", "TOKEN_GITHUB",
		"TOKEN_V2", "STRIPE_KEY_LIVE", "STRIPE_SK_TEST", "SSH_KEY_BASE64", "apiKeyProd", "dbPass", "authtoken", "JWT_2",
		"API_KEYS", "API_TOKENS", "PAT", "githubPat", "AZURE_PAT_1", "X-Api-Key", "X-Hub-Signature-256", "Authorization",
		"--token", "auth", "VAULT_SECRET_ID", "NPM_TOKEN_OLD", "PASSWORT", "DBPWD", "Set-Cookie", "ADMIN_PASSWORD_EU",
		"SIGNING_KEY_CURRENT", "GOOGLE_APPLICATION_CREDENTIALS_JSON"} {
		if !NamesSecret(name) {
			t.Errorf("RP-15: %s names no secret", name)
		}
	}
	for _, name := range []string{"KEYBOARD", "KEYBOARD_LAYOUT", "TOKENIZER_PATH", "TOKENIZERS_PARALLELISM", "MAX_TOKENS",
		"MAX_TOKEN", "TOKENS_PER_MINUTE", "TOKEN_LIMIT", "TOKEN_ENDPOINT", "SECRETARY", "SECRETARIAT_EMAIL", "MONKEY", "TURKEY",
		"SORT_KEY", "PRIMARY_KEY_2", "PUBLIC_KEY_PEM", "AWS_ACCESS_KEY_ID", "KEY_ID", "KEY_FILE", "PRIVATE_KEY_PATH",
		"PASSWORD_FILE", "PASSWORD_MIN_LENGTH", "SECRET_NAME", "SECRETS_DIR", "SECRETS_BACKEND", "API_KEY_HEADER",
		"COMPASS", "BYPASS", "PASS_THROUGH", "PATH", "PATTERN", "FORMAT", "PATCH", "PWD", "OLDPWD", "AUTH_MODE", "AUTHOR",
		"OAUTH_CLIENT", "JWT_AUDIENCE", "COOKIE_DOMAIN", "DISK", "TASK", "EOS_TOKEN", "TOKEN_TTL", "PASSWORDLESS",
		"CERT_PEM", "SIGNAL", "CREDENTIAL_HELPER", "CITY", "HOME", "KEYCLOAK_REALM", "USER", "ID", "PROD", "KEYS", ""} {
		if NamesSecret(name) {
			t.Errorf("RP-15: %s names a secret", name)
		}
	}
}
