package config

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// rings is a keyring in memory.
type rings struct {
	values map[string]string
	err    error
}

func (r *rings) Get(service, user string) (string, error) { return r.values[service+"|"+user], r.err }

func (r *rings) Set(service, user, value string) error {
	r.values[service+"|"+user] = value
	return r.err
}

const secretsFile = `
secrets:
  ring: {keyring: tenon/github}
  asked: {prompt: "API key", password: true}
  env: {env: TOKEN}
servers:
  a:
    command: x
    args: [--key, "${secret:env}", "$${secret:env}"]
    env: {A: "${secret:ring}", B: "${HOST}-${secret:asked}", C: plain}
  b:
    url: https://b.example/mcp
    headers: {X-Key: "key ${secret:ring}"}
    auth: {type: bearer, secret: asked}
  off: {url: "https://c.example/mcp", enabled: false, auth: {type: bearer, secret: {prompt: never}}}
`

func TestSecretsInValues(t *testing.T) {
	ring := &rings{values: map[string]string{"tenon|github": "from the ring"}}
	c, err := Parse("tenon.yaml", []byte(secretsFile), Options{Dir: t.TempDir(), LookupEnv: env("TOKEN", "t0k", "HOST", "h"), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	// No secret is read before it is needed.
	if got := c.Servers["a"].Env["A"]; got != "${secret:ring}" {
		t.Errorf("A is %q before", got)
	}
	ctx := context.Background()
	if _, err := c.Server(ctx, "a"); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("not asked for: %v", err)
	}
	questions, err := c.Questions()
	if err != nil || len(questions) != 1 || questions[0].Text != "API key" || !questions[0].Hidden {
		t.Fatalf("questions %v, %v", questions, err)
	}
	if kept, err := c.Answer(questions[0], "answer"); err != nil || !kept {
		t.Fatalf("answer: %v, %v", kept, err)
	}
	a, err := c.Server(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--key", "t0k", "${secret:env}"}, a.Args); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "from the ring", "B": "h-answer", "C": "plain"}, a.Env); diff != "" {
		t.Error(diff)
	}
	if len(a.Secrets) != 3 {
		t.Errorf("%d values to mask", len(a.Secrets))
	}
	b, err := c.Server(ctx, "b")
	if err != nil || b.Headers["X-Key"] != "key from the ring" || b.Auth.Secret.Reveal() != "answer" {
		t.Errorf("b is %v, %v", b.Headers, err)
	}
	// The secret is cached for the next process. The cache entry belongs to this project only.
	again, err := Parse("tenon.yaml", []byte(secretsFile), Options{Dir: t.TempDir(), LookupEnv: env("TOKEN", "t0k", "HOST", "h"), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	if questions, err := again.Questions(); err != nil || len(questions) != 0 {
		t.Errorf("asked again: %v, %v", questions, err)
	}
	for _, v := range mustShow(t, again) {
		if v.Value == "answer" || v.Value == "t0k" {
			t.Errorf("%s shows a secret", v.Path)
		}
	}
	ring.err = errors.New("locked")
	if _, err := c.Server(ctx, "b"); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("a locked keyring: %v", err)
	}
}

func mustShow(t *testing.T, c *Config) []Value {
	t.Helper()
	values, err := c.Show("")
	if err != nil {
		t.Fatal(err)
	}
	return values
}
