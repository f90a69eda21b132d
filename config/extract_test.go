package config

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestExtractTokensOfOneName extracts literal tokens from a file into variables. If two tokens would get the same
// variable, each one must still be used only where it was.
func TestExtractTokensOfOneName(t *testing.T) {
	token := func(c string) string { return "ghp_" + strings.Repeat(c, 36) }
	in := `{"inputs": [{"id": "g_token", "type": "promptString"}], "servers": {
		"a": {"type": "stdio", "command": "x", "env": {"API_TOKEN": "` + token("a") + `", "OTHER": "` + token("a") + `"}},
		"b": {"type": "stdio", "command": "x", "env": {"API_TOKEN": "` + token("b") + `", "B_API_TOKEN": "` + token("c") + `"}},
		"d": {"type": "stdio", "command": "x", "env": {"API_TOKEN": "` + token("a") + `"}},
		"e-f": {"type": "http", "url": "https://e.example/mcp", "headers": {"Authorization": "Bearer ` + token("e") + `"}},
		"e_f": {"type": "http", "url": "https://f.example/mcp", "headers": {"Authorization": "Bearer ` + token("f") + `"}},
		"g": {"type": "http", "url": "https://g.example/mcp", "headers": {"Authorization": "Bearer ` + token("g") + `"}}}}`
	got, err := Import(Source{Label: "mcp.json", Data: []byte(in), Extract: true})
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, line := range got.Export {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		variables[name] = strings.Trim(value, "'")
	}
	cfg, err := Parse("tenon.yaml", got.YAML(), Options{Dir: t.TempDir(), Home: t.TempDir(), LookupEnv: func(name string) (string, bool) {
		v, ok := variables[name]
		return v, ok
	}})
	if err != nil {
		t.Fatalf("%v\n%s", err, got.YAML())
	}
	for at, want := range map[string]string{"a API_TOKEN": "a", "a OTHER": "a", "b API_TOKEN": "b", "b B_API_TOKEN": "c", "d API_TOKEN": "a"} {
		server, key, _ := strings.Cut(at, " ")
		if v := cfg.Servers[server].Env[key]; v != token(want) {
			t.Errorf("%s is %s", at, v)
		}
	}
	for server, want := range map[string]string{"e-f": "e", "e_f": "f", "g": "g"} {
		s, ok := cfg.SecretAt("servers." + server + ".auth.secret")
		if !ok || variables[s.Env] != token(want) {
			t.Errorf("the secret of %s is %s: %s", server, s.Env, variables[s.Env])
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", got.YAML(), strings.Join(got.Export, "\n"))
	}
}

// TestExtractPlaces extracts literal secrets from every place of an entry that can hold a variable. The file that
// results has no literal secret, and with the variables it has the values of the imported file.
func TestExtractPlaces(t *testing.T) {
	const in = `{"mcpServers": {
		"web": {"type": "http", "url": "https://me:p%40ss-word@web.example/mcp?city=Delft&api_key=abc%2Bdef0123#frag"},
		"sse": {"type": "sse", "url": "https://sse.example/sse?token=hunter22"},
		"git": {"type": "http", "url": "https://ghp_abcdefghijklmnopqrst@git.example/mcp"},
		"run": {"command": "npx", "args": ["-y", "db-server", "--api-key", "s3cr3t-key", "--token=ghp_abcdefghijklmnopqrst",
			"postgres://me:pg$word@db/x", "--city", "Delft", "API_SECRET=inner-secret", "Authorization: Bearer in-a-word"],
			"env": {"DB_PASS": "hunter2", "DATABASE_URL": "mysql://me:my-word@db/y", "TOWN": "Delft"}},
		"head": {"type": "http", "url": "https://head.example/mcp", "headers": {"X-API-Key": "in-a-header", "X-Auth-Token": "in-another"}}}}`
	literals := []string{"ss-word", "def0123", "hunter2", "hunter22", "ghp_abcdefghijklmnopqrst", "s3cr3t-key", "pg$word",
		"inner-secret", "in-a-word", "my-word", "in-a-header", "in-another"}
	got, err := Import(Source{Label: "mcp.json", Kind: "claude", Data: []byte(in), Extract: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, literal := range literals {
		if strings.Contains(string(got.YAML()), literal) {
			t.Errorf("RP-15_extract: %s is left in the file", literal)
		}
	}
	for _, n := range got.Notes {
		if strings.Contains(n.Message, "literal") {
			t.Errorf("a note: %s", n.Error())
		}
	}
	lookup := func(name string) (string, bool) { v, ok := got.Extracted[name]; return v, ok }
	after, err := Parse("tenon.yaml", got.YAML(), Options{Dir: t.TempDir(), Home: t.TempDir(), LookupEnv: lookup})
	if err != nil {
		t.Fatalf("%v\n%s", err, got.YAML())
	}
	for _, w := range after.Warnings {
		if w.Message == literalToken || w.Message == literalCredential {
			t.Errorf("a warning: %s", w.Error())
		}
	}
	plain, err := Import(Source{Label: "mcp.json", Kind: "claude", Data: []byte(in)})
	if err != nil {
		t.Fatal(err)
	}
	before, err := Parse("tenon.yaml", plain.YAML(), Options{Dir: t.TempDir(), Home: t.TempDir(), LookupEnv: env()})
	if err != nil {
		t.Fatal(err)
	}
	for name, was := range before.Servers {
		is := after.Servers[name]
		if is.URL != was.URL || !slices.Equal(is.Args, was.Args) || !maps.Equal(is.Env, was.Env) {
			t.Errorf("%s: %+v, was %+v", name, is, was)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", got.YAML(), strings.Join(got.Export, "\n"))
	}
}

// TestCapped checks that a program that prints a secret cannot fill tenon's memory, whichever way its output is read.
func TestCapped(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(w, strings.Repeat("x", 4*maxSecret))
		written <- err
		_ = w.Close()
	}()
	var c capped
	n, err := io.Copy(&c, r) // as os/exec does
	if err != nil || n != 4*maxSecret || len(c.String()) != maxSecret {
		t.Errorf("%d bytes were read and %d kept, %v", n, len(c.String()), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	_ = r.Close()
}

// TestExtractOneToken imports a file whose tools share one entry of mcp. Its servers share the variable of its token.
func TestExtractOneToken(t *testing.T) {
	t.Run("RP-17_one_token_of_several_servers", func(t *testing.T) {
		got, err := Import(Source{Label: "tg.json", Extract: true, Data: []byte(`{
			"mcp": {"a": {"url": "https://a.example/mcp", "auth-token": "hush-hush"},
				"b": {"url": "https://b.example/mcp", "auth-token": "hush-hush"}},
			"tool": {"x": {"type": "mcp-tool", "name": "x", "mcp-tool": "a"}, "y": {"type": "mcp-tool", "name": "y", "mcp-tool": "a"},
				"z": {"type": "mcp-tool", "name": "z", "mcp-tool": "b"}}}`)})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"export A_TOKEN='hush-hush'", "export B_TOKEN='hush-hush'"}; !slices.Equal(got.Export, want) {
			t.Errorf("%q, want %q\n%s", got.Export, want, got.YAML())
		}
	})
}
