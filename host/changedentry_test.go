package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// TestRP16_ChangedEntries has a program change servers that it loaded from a file. What only a file can have, such as
// secrets, stays allowed.
func TestRP16_ChangedEntries(t *testing.T) {
	const file = `version: 1
secrets: {token: {env: TOKEN}}
servers:
  local: {command: x, args: ["~/a", "$HOME"], env: {A: "${secret:token}"}, env_file: vars, sampling: ask, sampling_model: main}
  remote: {url: "https://mcp.example.com/mcp", auth: {type: bearer, secret: token}, headers: {X-Key: "${secret:token}"},
    exclude: [drop_*], transform: [{prefix: r_}], policy: {approval: always, max_calls: {run: 3}}}
  off: {url: "${NOT_SET}/mcp", enabled: false}
models: {main: {provider: script, path: steps.yaml}}
`
	for name, tc := range map[string]struct {
		set  func(s map[string]servers.Config, of func(name string, f func(*servers.Config)))
		want string // in the error; empty: the host opens
	}{
		"unchanged": {nil, ""},
		"timeouts": {func(s map[string]servers.Config, of func(string, func(*servers.Config))) {
			for n := range s {
				of(n, func(c *servers.Config) { c.RequestTimeout = time.Minute })
			}
		}, ""},
		"another command": {func(_ map[string]servers.Config, of func(string, func(*servers.Config))) {
			of("local", func(c *servers.Config) { c.Command = "y" })
		}, ""},
		"no command": {func(_ map[string]servers.Config, of func(string, func(*servers.Config))) {
			of("local", func(c *servers.Config) { c.Command = "" })
		}, "servers.local"},
		"a command too": {func(_ map[string]servers.Config, of func(string, func(*servers.Config))) {
			of("remote", func(c *servers.Config) { c.Command = "y" })
		}, "servers.remote"},
		"a glob": {func(_ map[string]servers.Config, of func(string, func(*servers.Config))) {
			of("remote", func(c *servers.Config) { c.Exclude = []string{"["} })
		}, "servers.remote.exclude[0]: '[' is not a glob"},
		"a model": {func(_ map[string]servers.Config, of func(string, func(*servers.Config))) {
			of("local", func(c *servers.Config) { c.SamplingModel = "nope" })
		}, "servers.local.sampling_model: no model 'nope'"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, text := range map[string]string{"tenon.yaml": file, "vars": "B=1\n", "steps.yaml": "steps: [{text: a}]\n"} {
				if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := func(string) (string, bool) { return "", false }
			c, err := config.Load(t.Context(), config.Options{File: filepath.Join(dir, "tenon.yaml"), Home: t.TempDir(), NoUser: true,
				Admin: filepath.Join(dir, "none"), LookupEnv: env})
			if err != nil {
				t.Fatal(err)
			}
			if tc.set != nil {
				tc.set(c.Servers, func(name string, f func(*servers.Config)) {
					s := c.Servers[name]
					f(&s)
					c.Servers[name] = s
				})
			}
			h, err := host.Open(t.Context(), host.Config{Config: c, LookupEnv: env, Home: t.TempDir()})
			if err == nil {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err == nil) != (tc.want == "") || err != nil && (tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
