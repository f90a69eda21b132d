package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

const literalFile = `
servers:
  a:
    command: x
    args: [run, --api-key, abcdef0123, --token=ghp_abcdefghijklmnopqrst, --city, Amsterdam]
    env: {API_KEY: "8f14e45fceea167a", PASSWORD: "S3cr3t!Passw0rd99", TOWN: Delft, DB_PASS2: hunter2,
      DATABASE_URL: "postgres://me:inner-word@db/x"}
    config: {deep: [{client_secret: in-settings}], api_secret: at-the-top}
  b:
    url: http://127.0.0.1:1/mcp
    headers: {X-API-Key: in-a-header}
  c:
    url: http://127.0.0.1:1/mcp?api_key=in-a-query
    transform: [{set_params: {access_token: in-a-parameter}}]
tools:
  d:
    kind: http
    description: Tests
    request: {url: http://127.0.0.1:1/?token=in-a-request, headers: {X-Auth-Token: in-its-header,
      Authorization: 'Bearer {{ secrets.k }}'}, method: POST, body: '{"user": "me", "password": "in-its-body"}'}
secrets: {k: {env: K}}
`

var literalValues = []string{"abcdef0123", "ghp_abcdefghijklmnopqrst", "8f14e45fceea167a", "S3cr3t!Passw0rd99", "hunter2",
	"inner-word", "in-settings", "in-a-header", "in-a-query", "in-a-request", "in-its-header", "in-its-body",
	"in-a-parameter", "at-the-top"}

// contained returns the literals of literalFile that a text contains.
func contained(text string) (found []string) {
	for _, v := range literalValues {
		if strings.Contains(text, v) {
			found = append(found, v)
		}
	}
	return found
}

// TestKeyedMaps checks which maps have keys that name secrets. They follow from the structs.
func TestKeyedMaps(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(keyedMaps())), []string{"arguments", "config", "env", "environment",
		"headers", "provider_options", "query", "set_params"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLiteralSecrets checks that literal secrets are registered, reported, and masked in every view of a configuration.
func TestLiteralSecrets(t *testing.T) {
	c, err := Parse("tenon.yaml", []byte(literalFile), Options{Dir: t.TempDir(), LookupEnv: env()})
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, v := range c.VariableSecrets() {
		registered = append(registered, v.Reveal())
	}
	text := strings.Join(registered, "\n")
	if got := contained(text); len(got) != len(literalValues) || strings.Contains(text, "Delft") ||
		strings.Contains(text, "Amsterdam") {
		t.Errorf("registered: %q", registered)
	}
	var warned []string
	for _, w := range c.Warnings {
		if w.Message == literalToken {
			warned = append(warned, w.Path)
		}
	}
	for _, path := range []string{"servers.a.args[2]", "servers.a.args[3]", "servers.a.env.API_KEY",
		"servers.a.env.PASSWORD", "servers.a.env.DB_PASS2", "servers.a.env.DATABASE_URL",
		"servers.a.config.deep[0].client_secret", "servers.b.headers.X-API-Key",
		"servers.a.config.api_secret", "servers.c.url", "tools.d.request.url", "tools.d.request.headers.X-Auth-Token",
		"tools.d.request.body"} {
		if !strings.Contains(strings.Join(warned, "\n")+"\n", path+"\n") {
			t.Errorf("no warning about %s: %q", path, warned)
		}
	}
	if len(warned) != 13 {
		t.Errorf("warnings: %q", warned)
	}
	shown, err := c.Show("")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(shown)
	if got := contained(string(b)); got != nil || !strings.Contains(string(b), "Delft") {
		t.Errorf("config show has %q", got)
	}
	if b, _ = json.Marshal(Compare(&Config{}, c)); contained(string(b)) != nil || !strings.Contains(string(b), "Delft") {
		t.Errorf("the differences have %q: %s", contained(string(b)), b)
	}
	if text := MaskText(literalFile); contained(text) != nil || !strings.Contains(text, "Delft") {
		t.Errorf("the text has %q", contained(text))
	}
	if text := MaskText("CITY=Delft\nexport DB_PASSWORD=\"hunter2\"\n"); contained(text) != nil || !strings.Contains(text, "Delft") {
		t.Error(text)
	}
	_, err = Parse("tenon.yaml", []byte("profile: strict\n"+literalFile), Options{Dir: t.TempDir(), LookupEnv: env()})
	if err == nil || !strings.Contains(err.Error(), "servers.a.env.PASSWORD") {
		t.Errorf("profile: strict accepts the file: %v", err)
	}
}
