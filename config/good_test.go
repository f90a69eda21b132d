package config

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// TestGood compares the parsed contents of valid files, including defaults, with golden files.
func TestGood(t *testing.T) {
	for _, name := range []string{"full.yaml", "claude.json", "empty.yaml", "revision.yaml"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "good", name)
			c, err := Load(context.Background(), Options{File: path, Home: t.TempDir(),
				LookupEnv: env("TOKEN", "t0k", "HOST", "mcp.example.com", "DATA", "data")})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path+".golden", dump(t, c))
		})
	}
}

// dump formats a configuration by its YAML keys, with warnings. It replaces the paths of this machine.
func dump(t *testing.T, c *Config) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(plain(reflect.ValueOf(*c))); err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "%s\n", w)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte(filepath.ToSlash(c.Dir)), []byte("DIR"))
}

func plain(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case v.Type() == durationType:
		return v.Interface().(time.Duration).String()
	case v.Type() == secretType:
		return v.Interface().(tenon.Secret).String()
	case v.Kind() == reflect.Struct:
		out := map[string]any{}
		for _, f := range fields(v.Type()) {
			if e := v.Field(f.index); !e.IsZero() {
				out[f.name] = plain(e)
			}
		}
		return out
	case v.Kind() == reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[k.String()] = plain(v.MapIndex(k))
		}
		return out
	}
	return v.Interface()
}

// TestDefaults checks that the defaults in struct tags, which the documentation shows, equal the values of
// WithDefaults.
func TestDefaults(t *testing.T) {
	server := servers.Config{Command: "x"}.WithDefaults()
	api := servers.Config{URL: "https://a.example", Auth: servers.Auth{Type: servers.AuthAPIKey}}.WithDefaults()
	if server.Transport != "stdio" || api.Transport != "http" || api.Auth.Header != "X-API-Key" {
		t.Errorf("inferred: %q %q %q", server.Transport, api.Transport, api.Auth.Header)
	}
	for _, v := range []any{server, server.Auth, agent.Config{}.WithDefaults().Tools, agent.Limits{}.WithDefaults(),
		policy.Block{}.WithDefaults(), Telemetry{}.WithDefaults(), agent.Config{}.WithDefaults(),
		table.Config{}.WithDefaults(), table.Config{}.WithDefaults().Legacy, agent.Errors{}.WithDefaults()} {
		rv := reflect.ValueOf(v)
		for _, f := range fields(rv.Type()) {
			want, ok := literalDefault(f.typ, f)
			if !ok {
				continue
			}
			got := rv.Field(f.index)
			if got.Kind() == reflect.Pointer {
				if got.IsNil() {
					got = reflect.New(got.Type().Elem())
				}
				got = got.Elem()
			}
			text := fmt.Sprint(got.Interface())
			if f.typ == durationType {
				d, err := time.ParseDuration(f.def)
				if err != nil {
					t.Fatal(err)
				}
				want = d
			}
			if text != fmt.Sprint(want) {
				t.Errorf("%s.%s: default %q by its tag, %q by WithDefaults", rv.Type(), f.name, want, text)
			}
		}
	}
}

func TestEnv(t *testing.T) {
	file := `servers:
  one:
    command: ${GITHUB_TOKEN}
    args: [a, "x${GITHUB_TOKEN}"]
    env: {T: "${GITHUB_TOKEN}"}
  two:
    url: https://${GITHUB_TOKEN}/mcp
    headers: {A: "Bearer ${GITHUB_TOKEN}"}
  off:
    enabled: false
    command: ${GITHUB_TOKEN}
`
	t.Run("HD-CL-2_HD-EDGE-5_unset", func(t *testing.T) {
		dir := write(t, map[string]string{"env5.yaml": file})
		_, err := Load(context.Background(), Options{File: "env5.yaml", Dir: dir, Home: dir, LookupEnv: env()})
		want := `env5.yaml:3:14: servers.one.command: environment variable 'GITHUB_TOKEN' not found
    set it, or write ${GITHUB_TOKEN:-default}
env5.yaml:4:15: servers.one.args[1]: environment variable 'GITHUB_TOKEN' not found
    set it, or write ${GITHUB_TOKEN:-default}
env5.yaml:5:14: servers.one.env.T: environment variable 'GITHUB_TOKEN' not found
    set it, or write ${GITHUB_TOKEN:-default}
env5.yaml:7:10: servers.two.url: environment variable 'GITHUB_TOKEN' not found
    set it, or write ${GITHUB_TOKEN:-default}
env5.yaml:8:18: servers.two.headers.A: environment variable 'GITHUB_TOKEN' not found
    set it, or write ${GITHUB_TOKEN:-default}`
		if err == nil {
			t.Fatal("no error")
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("HD-CL-2_order of lookup", func(t *testing.T) {
		dir := write(t, map[string]string{
			"p/tenon.yaml":              "servers: {a: {command: x, args: ['${A}', '${B}', '${C:-none}', '${D:-d}', '${E:-e}', '$$A $A ${B}']}}",
			"p/.env":                    "A=dot\nexport B='dot b' # comment\nE=\n",
			".config/tenon/.env":        "A=user\nB=user\nC=\"user c\"\n",
			".config/tenon/config.yaml": "servers: {u: {command: x, args: ['${A}', '${B}', '${C}']}}",
		})
		c, err := Load(context.Background(), Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env("A", "env ${B}")})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{"a": {"env ${B}", "dot b", "none", "d", "e", "$A $A dot b"}, "u": {"env ${B}", "user", "user c"}}
		for name, args := range want { // each file uses the .env next to it
			if diff := cmp.Diff(args, c.Servers[name].Args); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
	t.Run("env_file lies below env", func(t *testing.T) {
		dir := write(t, map[string]string{
			"tenon.yaml": "servers: {a: {command: x, envFile: a.env, env: {B: mine}}}",
			"a.env":      "\ufeff# note\n\nA=1\nB=2\r\nexport C = \"x # y\"\nD=a#b\nE='q'\nF=\n",
		})
		c, err := Load(context.Background(), Options{Dir: dir, Home: dir, LookupEnv: env()})
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Server(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"A": "1", "B": "mine", "C": "x # y", "D": "a#b", "E": "q", "F": ""}
		if diff := cmp.Diff(want, s.Env); diff != "" {
			t.Error(diff)
		}
		if s.Cwd != dir {
			t.Errorf("cwd %s, want the file's folder", s.Cwd)
		}
	})
}

func TestWarnings(t *testing.T) {
	file := `servers:
  a:
    url: http://a.example/mcp
    headers: {authorization: Bearer abcdefghijkl}
    auth: {type: bearer, secret: {env: T}}
  b: {url: "http://127.0.0.1.example/mcp"}
  c: {url: "http://127.8.9.1:80/mcp"}
  d: {url: "http://[::1]/mcp"}
  e: {command: x, env: {T: ghp_0123456789abcdef}}
`
	c, err := Parse("t.yaml", []byte(file), Options{Dir: t.TempDir(), LookupEnv: env()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range c.Warnings {
		got = append(got, strings.Split(w.Error(), "\n")[0])
	}
	want := []string{
		"t.yaml:3:10: servers.a.url: 'url' must use https:// (or http:// for localhost): a credential would go over it unencrypted",
		"t.yaml:4:30: servers.a.headers.authorization: a literal token in the file",
		"t.yaml:4:30: servers.a.headers.authorization: 'Authorization' together with 'auth': the header wins",
		"t.yaml:6:12: servers.b.url: 'url' must use https:// (or http:// for localhost)",
		"t.yaml:9:28: servers.e.env.T: a literal token in the file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	longtest.Skip(t)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := Parse("t.yaml", []byte(b.String()), Options{Dir: t.TempDir()})
	lines := strings.Split(err.Error(), "\n")
	if last := lines[len(lines)-1]; last != "… and 1950 more" || strings.Count(err.Error(), "unknown key") != 50 {
		t.Errorf("%d lines, last %q", len(lines), last)
	}
}

func TestStarter(t *testing.T) {
	for name, h := range map[string]Hints{
		"demo and anthropic": {Name: "my project", Demo: []string{"/opt/ten on/tenon", "demo-server", "-x"}, Provider: "anthropic"},
		"nothing":            {},
		"ollama":             {Provider: "ollama", Model: "qwen3:8b"},
	} {
		t.Run(name, func(t *testing.T) {
			text := Starter(h)
			c, err := Parse("tenon.yaml", text, Options{Dir: t.TempDir(), LookupEnv: env()})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(c.Warnings) > 0 || len(c.ServerNames()) != min(len(h.Demo), 1) || c.Agents["default"].Instructions.Text == "" {
				t.Errorf("warnings %v, servers %v", c.Warnings, c.ServerNames())
			}
			if h.Model != "" && c.Models[c.ModelNames()[0]].Model != h.Model {
				t.Errorf("models %v", c.Models)
			}
			// The parts that are commented out are valid, too, if they are enabled.
			on := strings.NewReplacer("\n  # Files", "\n  # Files", "\n  # A server", "\n  # A server", "\n  # ", "\n  ", "\n#   ", "\n  ", "\n# models:", "\nmodels:", "\n# secrets:", "\nsecrets:",
				"path: steps.yaml", "path: .").Replace(string(text))
			if c, err = Parse("tenon.yaml", []byte(on), Options{Dir: t.TempDir(), LookupEnv: env()}); err != nil {
				t.Fatalf("%v\n%s", err, on)
			}
			if len(c.Servers) != 3 || len(c.Models) != 6 || len(c.Secrets) != 1 {
				t.Errorf("%d servers, %d models, %d secrets:\n%s", len(c.Servers), len(c.Models), len(c.Secrets), on)
			}
		})
	}
}

// FuzzParse checks that no file causes a panic and that every error has a position.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "*", "*"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data, Options{Dir: dir, Home: dir, LookupEnv: env("HOME", "/home/x")})
		if err == nil {
			for _, n := range c.ServerNames() {
				if s := c.Servers[n]; s.Transport == "" {
					t.Errorf("server %q has no transport", n)
				}
			}
			return
		}
		errs, ok := err.(Errors)
		if !ok || len(errs) == 0 {
			t.Fatalf("%T %v", err, err)
		}
		for _, e := range errs {
			if e.Line < 1 || e.Col < 1 || e.Message == "" || e.File == "" {
				t.Errorf("no position: %+v", e)
			}
		}
	})
}
