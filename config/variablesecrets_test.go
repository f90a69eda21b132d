package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariableSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.env"), []byte("DB_PASSWORD=from-the-file\nCITY=Amsterdam\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, LookupEnv: env("API_KEY", "by-its-name", "PLAIN", "by-its-key", "FLAG", "by-its-flag",
		"ODD", "ghp_0123456789abcdef0123", "CITY", "Amsterdam", "PWD", "/somewhere/else", "SHORT_KEY", "12345",
		"CLOUD_CREDENTIALS", file, "NESTED", "in-the-settings", "HDR", "in-a-header", "MODEL_KEY", "of-a-model")}
	c, err := Parse("tenon.yaml", []byte(`
servers:
  a:
    command: x
    args: ["--x=${API_KEY}", "--password=${FLAG}", "${ODD}", "${CITY}", "${PWD}", "${NO_KEY:-a-written-default}"]
    env: {GITHUB_TOKEN: "${PLAIN}", TOWN: "${CITY}", SOME: "${SHORT_KEY}", CLOUD: "${CLOUD_CREDENTIALS}"}
    env_file: a.env
    config: {deep: [{secret: "${NESTED}"}]}
  b:
    url: http://127.0.0.1:1/mcp
    headers: {Authorization: "Bearer ${HDR}", X-Api-Key: a-literal-key, X-Town: Amsterdam}
models:
  m: {provider: openai, model: x, base_url: "http://127.0.0.1:1/${MODEL_KEY}", headers: {Authorization: Bearer of-a-file}}
`), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range c.VariableSecrets() {
		got = append(got, v.Reveal())
	}
	want := []string{"a-literal-key", "by-its-flag", "by-its-key", "by-its-name", "from-the-file", "ghp_0123456789abcdef0123",
		"in-a-header", "in-the-settings", "of-a-file", "of-a-model"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
