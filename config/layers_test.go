package config

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// layers loads a project together with a user's file and, if its text is not empty, an administrator's file.
func layers(t *testing.T, files map[string]string, vars ...string) (*Config, error) {
	t.Helper()
	all := map[string]string{"p/x": ""}
	for name, text := range files {
		name = strings.NewReplacer("USER", ".config/tenon/config.yaml", "PROJECT", "p/tenon.yaml", "ADMIN", "etc/config.yaml").Replace(name)
		all[name] = text
	}
	dir := write(t, all)
	return Load(context.Background(), Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env(vars...), Admin: filepath.Join(dir, "etc/config.yaml"),
		CheckOwner: func(string, fs.FileInfo) error { return nil }})
}

// inEffect returns the values at a path, each with the layer that it comes from.
func inEffect(c *Config, path string) string {
	list, err := c.Show(path)
	if err != nil {
		return ""
	}
	var out []string
	for _, v := range list {
		out = append(out, v.Value+" ("+v.Layer+")")
	}
	return strings.Join(out, " ")
}

// TestLayerValues checks which layer's value of a key is in effect. SEC-F1 marks the rows in which a project tries to
// loosen the user's settings.
func TestLayerValues(t *testing.T) {
	for name, tt := range map[string]struct{ user, project, path, want string }{
		"SEC-F1_limits raised":              {"limits: {max_turns: 5}", "limits: {max_turns: 50}", "limits.max_turns", "5 (user)"},
		"limits lowered":                    {"limits: {max_turns: 5}", "limits: {max_turns: 2}", "limits.max_turns", "2 (project)"},
		"SEC-F1_a limit by its other name":  {"limits: {max_turns: 5}", "limits: {max_iterations: 50}", "limits.max_turns", "5 (user)"},
		"SEC-F1_the user's other name":      {"limits: {max_iterations: 5}", "limits: {max_turns: 50}", "limits.max_turns", "5 (user)"},
		"SEC-F1_no limit":                   {"limits: {cost: 2}", "limits: {cost: 0}", "limits.cost", "2 (user)"},
		"SEC-F1_limits null":                {"limits: {cost: 2}", "limits: ~", "limits.cost", "2 (user)"},
		"SEC-F1_a limit null":               {"limits: {cost: 2}", "limits: {tokens: 9}", "limits.cost", "2 (user)"},
		"SEC-F1_time":                       {"limits: {run_timeout: 1m}", "limits: {run_timeout: 3600}", "limits.run_timeout", "1m (user)"},
		"SEC-F1_confirm":                    {"limits: {on_limit: fail}", "limits: {on_limit: confirm}", "limits.on_limit", "fail (user)"},
		"SEC-F1_an agent's limits":          {"limits: {max_turns: 5}", "agents: {default: {limits: {max_turns: 50}}}", "agents.default.limits.max_turns", "5 (user)"},
		"SEC-F1_an agent of the user's":     {"agents: {ops: {limits: {max_turns: 5}}}", "agents: {ops: {limits: {max_turns: 50}}}", "agents.ops.limits.max_turns", "5 (user)"},
		"an agent's own limit of the user":  {"limits: {max_turns: 5}\nagents: {ops: {limits: {max_turns: 50}}}", "name: p", "agents.ops.limits.max_turns", "50 (user)"},
		"SEC-F1_profile raises":             {"limits: {max_turns: 5}", "profile: knime", "limits.max_turns", "5 (user)"},
		"profile of the project":            {"limits: {tokens: 5}", "profile: knime", "limits.max_turns", "25 (project)"},
		"profile below what is written":     {"limits: {max_turns: 30}", "profile: knime", "limits.max_turns", "30 (user)"},
		"SEC-F1_profile of the user":        {"profile: strict", "profile: trustgraph\npolicy: {urls: {require_https: off}}", "policy.urls.require_https", "error (user)"},
		"SEC-F1_profile and user's entries": {"servers: {a: {command: npx}}", "profile: trustgraph", "servers.a.lifecycle", "lazy (default)"},
		"profile and its own entries":       {"", "profile: trustgraph\nservers: {a: {command: npx}}", "servers.a.lifecycle", "per_call (project)"},
		"profile of the user for all":       {"profile: trustgraph", "servers: {a: {command: npx}}", "servers.a.lifecycle", "per_call (user)"},
		"SEC-F1_budgets raised":             {"budgets: {day: {cost: 1}}", "budgets: {day: {cost: 100}}", "budgets.day.cost", "1 (user)"},
		"SEC-F1_budgets lifted":             {"budgets: {day: {cost: 1}}", "budgets: {day: {cost: 0}}", "budgets.day.cost", "1 (user)"},
		"SEC-F1_budgets replaced":           {"budgets: {day: {cost: 1}}", "budgets: {session: {cost: 100}}", "budgets.day.cost", "1 (user)"},
		"SEC-F1_time of a day":              {"budgets: {day: {time: 1h}}", "budgets: {day: {time: 10h}}", "budgets.day.time", "1h (user)"},
		"SEC-F1_commands widened":           {"policy: {commands: {allow: [npx, uvx]}}", "policy: {commands: {allow: [npx, sh]}}", "policy.commands.allow", "[npx] (project)"},
		"SEC-F1_commands emptied":           {"policy: {commands: {allow: [npx]}}", "policy: {commands: {allow: []}}", "policy.commands.allow", "[npx] (user)"},
		"SEC-F1_pins off":                   {"policy: {pins: ask}", "policy: {pins: off}", "policy.pins.changed", "ask (user)"},
		"SEC-F1_pins off, long":             {"policy: {pins: ask}", "policy: {pins: {changed: off}}", "policy.pins.changed", "ask (user)"},
		"SEC-F1_pins off, short":            {"policy: {pins: {changed: warn}}", "policy: {pins: off}", "policy.pins.changed", "warn (user)"},
		"SEC-F1_new tools":                  {"policy: {pins: {new: ask}}", "policy: {pins: {new: allow}}", "policy.pins.new", "ask (user)"},
		"SEC-F1_private addresses":          {"policy: {urls: {allow_private: false}}", "policy: {urls: {allow_private: true}}", "policy.urls.allow_private", "false (user)"},
		"SEC-F1_https":                      {"policy: {urls: {require_https: error}}", "policy: {urls: {require_https: off}}", "policy.urls.require_https", "error (user)"},
		"SEC-F1_literal secrets":            {"policy: {literal_secrets: error}", "policy: {literal_secrets: off}", "policy.literal_secrets", "error (user)"},
		"SEC-F1_unset variables":            {"policy: {env_unresolved: error}", "policy: {env_unresolved: empty}", "policy.env_unresolved", "error (user)"},
		"SEC-F1_store.redact emptied":       {"store: {redact: [iban]}", "store: {redact: []}", "store.redact", "[iban] (project)"},
		"store.redact of both":              {"store: {redact: [iban]}", "store: {redact: [pin]}", "store.redact", "[pin, iban] (project)"},
		"SEC-F1_store moved":                {"store: {path: /u.db}", "store: {path: p.db}", "store.path", "/u.db (user)"},
		"SEC-F1_history deleted":            {"store: {retention: 90d}", "store: {retention: 1s}", "store.retention", "2160h (user)"},
		"SEC-F1_listen":                     {"serve: {listen: '127.0.0.1:1'}", "serve: {listen: '0.0.0.0:1'}", "serve.listen", `"127.0.0.1:1" (user)`},
		"SEC-F1_no token":                   {"serve: {auth: {type: token}}", "serve: {auth: {type: none}}", "serve.auth.type", "token (user)"},
		"SEC-F1_token of the project":       {"secrets: {t: {env: T}}\nserve: {auth: {secret: t}}", "serve: {auth: {secret: {env: OTHER}}}", "serve.auth.secret", "t (user)"},
		"SEC-F1_origins":                    {"serve: {origins: ['https://a.example']}", "serve: {origins: ['https://a.example', 'https://e.example']}", "serve.origins", `["https://a.example"] (project)`},
		"SEC-F1_apis":                       {"serve: {apis: [native]}", "serve: {apis: [native, openai]}", "serve.apis", "[native] (project)"},
		"SEC-F1_workbench":                  {"serve: {ui: false}", "serve: {ui: true}", "serve.ui", "false (user)"},
		"SEC-F1_traces":                     {"telemetry: {otlp: 'https://u.example'}", "telemetry: {otlp: 'https://e.example'}", "telemetry.otlp", `"https://u.example" (user)`},
		"SEC-F1_counters":                   {"telemetry: {metrics: false}", "telemetry: {metrics: true}", "telemetry.metrics", "false (user)"},
		"SEC-F1_tables of the old type":     {"tables: {legacy: {read: deny}}", "tables: {legacy: {read: allow}}", "tables.legacy.read", "deny (user)"},
		"SEC-F1_registry":                   {"secrets: {t: {env: T}}\nregistry: {url: 'https://u.example', secret: t}", "registry: {url: 'https://e.example'}", "registry.url", `"https://u.example" (user)`},
		"SEC-F1_sampling":                   {"servers: {a: {command: x, sampling: deny}}", "servers: {a: {command: x, sampling: allow}}", "servers.a.sampling", "deny (user)"},
		"SEC-F1_elicitation":                {"servers: {a: {command: x, elicitation: deny}}", "servers: {b: {command: x}}", "servers.b.elicitation", "deny (user)"},
		"SEC-F1_arguments unchecked":        {"servers: {a: {command: x}}\ntools: {t: {server: a, validate: error}}", "tools: {t: {server: a, validate: off}}", "tools.t.validate", "error (user)"},
		"log level of the project":          {"telemetry: {log_level: error}", "telemetry: {log_level: debug}", "telemetry.log_level", "debug (project)"},
		"rules of both are shown":           {"policy: {defaults: {approval: always}}", "policy: {defaults: {approval: never}}", "policy.defaults.approval.mode", "never (project) always (user)"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := layers(t, map[string]string{"USER": tt.user, "PROJECT": tt.project})
			if err != nil {
				t.Fatal(err)
			}
			if got := inEffect(c, tt.path); got != tt.want {
				t.Errorf("%s is %s, want %s", tt.path, got, tt.want)
			}
		})
	}
}

// TestLayerErrors checks which combinations of layers are refused, and that the error names the file with the mistake.
func TestLayerErrors(t *testing.T) {
	for name, tt := range map[string]struct{ admin, user, project, want string }{
		"SEC-F1_trust in a project":           {"", "", "trust: {projects: [{path: ., loosen: ['*']}]}", "tenon.yaml:1:19: trust.projects: only the user's or the administrator's file can hold this key"},
		"SEC-F1_trust by a merge key":         {"", "", "x-a: &a {projects: []}\ntrust: {<<: *a}", "trust.projects: only the user's"},
		"SEC-F1_forbid in a project":          {"", "", "trust: {forbid: []}", "trust.forbid: only the administrator's file can hold this key"},
		"forbid in the user's file":           {"", "trust: {forbid: [yes]}", "", "config.yaml:1:17: trust.forbid: only the administrator's file"},
		"SEC-F1_commands without an entry":    {"", "policy: {commands: {allow: [npx]}}", "policy: {commands: {allow: [sh]}}", "policy.commands.allow: allows nothing that"},
		"SEC-F1_a command of its own server":  {"", "policy: {commands: {allow: [npx]}}", "servers: {a: {command: sh}}\npolicy: {commands: {allow: [npx, sh]}}", "Invalid command 'sh'"},
		"SEC-F1_a command of a secret":        {"", "policy: {commands: {allow: [npx]}}", "secrets: {a: {command: [sh]}}", "Invalid command 'sh'"},
		"SEC-F1_a private address":            {"", "policy: {urls: {allow_private: false}}", "servers: {a: {url: 'http://127.0.0.1/'}}\npolicy: {urls: {allow_private: true}}", "private address"},
		"SEC-F1_a secret of the project":      {"", "servers: {a: {url: 'https://a.example', auth: {type: bearer, secret: t}}}", "secrets: {t: {env: EVIL}}", "no entry of this name in secrets"},
		"SEC-F1_a variable of its .env":       {"", "servers: {a: {command: '${WHAT}'}}", "name: p", "environment variable 'WHAT' not found"},
		"SEC-F1_unset variables":              {"", "servers: {a: {command: '${WHAT}'}}", "policy: {env_unresolved: empty}", "environment variable 'WHAT' not found"},
		"loosen a key that does not exist":    {"", "trust: {projects: [{path: ., loosen: [limits.max_turn]}]}", "name: p", "trust.projects[0].loosen[0]: there is no key 'limits.max_turn'"},
		"loosen no glob":                      {"", "trust: {projects: [{path: ., loosen: ['limits.[']}]}", "name: p", "is not a glob"},
		"loosen without a folder":             {"", "trust: {projects: [{loosen: [limits]}]}", "name: p", "'path' is required"},
		"a mistake in a hidden entry":         {"", "servers: {a: {command: x, timeout: soon}}", "servers: {a: {command: y}}", "servers.a.timeout: must be a duration"},
		"a mistake in a rule of the user":     {"", "policy: {rules: [{when: 'tool.nme', verdict: deny}]}", "name: p", "policy.rules[0].when: not a CEL expression"},
		"a mistake of the administrator":      {"policy: {defaults: {approval: sometimes}}", "", "policy: {defaults: {approval: never}}", "etc/config.yaml:1:31: policy.defaults.approval.mode: no such value"},
		"an unknown key of the administrator": {"polcy: {}", "", "name: p", "etc/config.yaml:1:1: polcy: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"PROJECT": tt.project, "p/.env": "WHAT=evil\n"}
			if tt.user != "" {
				files["USER"] = tt.user
			}
			if tt.admin != "" {
				files["ADMIN"] = tt.admin
			}
			_, err := layers(t, files)
			if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestLayerSecrets checks which secrets and variables an entry can use, by looking at the requests that reach its
// address.
func TestLayerSecrets(t *testing.T) {
	const user = "secrets: {t: {env: T}}\nservers:\n  a: {url: 'https://u.example/${PART:-none}', headers: {X: '${V}', Y: '${secret:t}'}, auth: {type: bearer, secret: t}}\n"
	files := map[string]string{"USER": user, ".config/tenon/.env": "T=mine\nV=mine\nOPENAI_API_KEY=mine\n",
		"PROJECT": "secrets: {t: {env: EVIL}}\nservers:\n  b: {url: 'https://e.example', headers: {X: '${V:-own}', Y: '${secret:t}'}, auth: {type: bearer, secret: t}}\n" +
			"models: {m: {provider: openai, model: x, base_url: 'https://e.example/v1'}, n: {provider: openai, model: x}}\n",
		"p/.env": "T=evil\nV=evil\nEVIL=evil\nPART=evil\nHTTPS_PROXY=evil\n"}
	c, err := layers(t, files)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Server(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{a.URL, a.Headers["X"], a.Headers["Y"], a.Auth.Secret.Reveal()}
	if diff := cmp.Diff([]string{"https://u.example/none", "mine", "mine", "mine"}, got); diff != "" {
		t.Errorf("SEC-F1: the user's server gets what the project says: %s", diff)
	}
	b, err := c.Server(context.Background(), "b")
	if err != nil {
		t.Fatal(err)
	}
	got = []string{b.Headers["X"], b.Headers["Y"], b.Auth.Secret.Reveal()}
	if diff := cmp.Diff([]string{"evil", "evil", "evil"}, got); diff != "" {
		t.Errorf("the project's server: %s", diff)
	}
	for model, want := range map[string]string{"m": "", "n": "mine"} { // the requests for n go to the provider itself
		m, err := c.Model(context.Background(), model)
		if err != nil || m.APIKey.Reveal() != want {
			t.Errorf("SEC-F1: model %s has the key %q, want %q (%v)", model, m.APIKey.Reveal(), want, err)
		}
	}
	t.Run("SEC-F1_a model of the user's name", func(t *testing.T) {
		c, err := layers(t, map[string]string{"USER": "models: {m: {provider: openai, model: x, api_key: {env: K}}}", ".config/tenon/.env": "K=mine\n",
			"PROJECT": "models: {m: {provider: openai, model: x, base_url: 'https://e.example/v1'}}"})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := c.Model(context.Background(), "m"); err != nil || m.APIKey.Reveal() != "" {
			t.Errorf("the key %q goes to %s (%v)", m.APIKey.Reveal(), m.BaseURL, err)
		}
	})
	t.Run("a project may name the user's secret", func(t *testing.T) {
		c, err := layers(t, map[string]string{"USER": "secrets: {t: {env: T}}", ".config/tenon/.env": "T=mine\n", "p/.env": "T=evil\n",
			"PROJECT": "servers: {b: {url: 'https://e.example', auth: {type: bearer, secret: t}}}"})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.Server(context.Background(), "b"); err != nil || b.Auth.Secret.Reveal() != "mine" {
			t.Errorf("%q, %v", b.Auth.Secret.Reveal(), err)
		}
	})
	t.Run("SEC-F1_the registry", func(t *testing.T) {
		var sent string
		web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Authorization") }))
		defer web.Close()
		c, err := layers(t, map[string]string{"USER": "secrets: {t: {env: T}}\nregistry: {url: 'https://u.example', secret: t}", ".config/tenon/.env": "T=mine\n",
			"PROJECT": "registry: {url: '" + web.URL + "'}"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Registry.URL == web.URL || sent != "" {
			t.Errorf("the user's token goes to %s", c.Registry.URL)
		}
	})
	t.Run("SEC-F1_answers to prompts", testLayersOfPrompts)
}

func testLayersOfPrompts(t *testing.T) {
	ring := ringOf{}
	dir := write(t, map[string]string{".config/tenon/config.yaml": "secrets: {t: {prompt: Token}}\nservers: {a: {url: 'https://u.example', auth: {type: bearer, secret: t}}}",
		"p/tenon.yaml": "name: p"})
	o := Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env(), Keyring: ring, Admin: filepath.Join(dir, "none")}
	c, err := Load(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := c.Questions()
	if err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if _, err := c.Answer(asked[0], "mine"); err != nil {
		t.Fatal(err)
	}
	evil := "secrets: {t: {prompt: Token}}\nservers: {b: {url: 'https://e.example', auth: {type: bearer, secret: t}}}"
	if err := os.WriteFile(filepath.Join(dir, "p/tenon.yaml"), []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Server(context.Background(), "b"); err == nil {
		t.Errorf("the project's server gets the answer %q", b.Auth.Secret.Reveal())
	}
	if a, err := c.Server(context.Background(), "a"); err != nil || a.Auth.Secret.Reveal() != "mine" {
		t.Errorf("the user's server gets %q, %v", a.Auth.Secret.Reveal(), err)
	}
}

// ringOf is a keyring in memory.
type ringOf map[string]string

func (r ringOf) Get(service, user string) (string, error) { return r[service+"/"+user], nil }

func (r ringOf) Set(service, user, value string) error {
	r[service+"/"+user] = value
	return nil
}

// TestShadowed checks that entries of two layers with the same name are never merged, and that a warning names both
// files.
func TestShadowed(t *testing.T) {
	c, err := layers(t, map[string]string{
		"USER":    "servers: {a: {command: mine, title: Mine, env: {TOKEN: x}}}\ntools: {t: {server: a, description: mine}}\nmodels: {m: {provider: ollama, model: mine, temperature: 1}}\n",
		"PROJECT": "servers: {a: {command: theirs}}\nmodels: {m: {provider: ollama, model: theirs}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Servers["a"]; a.Command != "theirs" || a.Title != "a" || len(a.Env) > 0 {
		t.Errorf("SEC-F1: merged: %+v", a)
	}
	if m := c.Models["m"]; m.Model != "theirs" || m.Temperature != nil {
		t.Errorf("SEC-F1: merged: %+v", m)
	}
	if _, ok := c.Tools["t"]; ok {
		t.Error("SEC-F1: the user's tool describes the project's server")
	}
	if id := c.ServerID("a"); id != "project:a" {
		t.Errorf("identity %s", id)
	}
	var warned []string
	for _, w := range c.Warnings {
		warned = append(warned, w.Error())
	}
	if text := strings.Join(warned, "\n"); len(warned) != 2 || !strings.Contains(text, "tenon.yaml:1:11: servers.a: is used in place of the entry of the same name in ../.config/tenon/config.yaml, line 1") {
		t.Errorf("warnings: %s", text)
	}
}

// TestPolicyOfLayers checks how the policies of several layers are combined.
func TestPolicyOfLayers(t *testing.T) {
	c, err := layers(t, map[string]string{
		"USER":    "servers: {a: {url: 'https://a.example/mcp', policy: {timeout: 5s, redact: [iban], max_calls: 3}}}\npolicy: {defaults: {rate: 5/m, retry: never, result_bytes: 1KiB}}\n",
		"PROJECT": "servers: {b: {url: 'https://A.example:443/mcp/', policy: {timeout: 1h, redact: [], max_calls: 0}}}\npolicy: {defaults: {rate: none, retry: always, result_bytes: 1MiB, cache: {ttl: 1h, force: true}}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := c.Rules()
	if err != nil {
		t.Fatal(err)
	}
	b := rules.For(policy.ID{Server: "project:b", Remote: "x"}, "")
	got := []any{b.Timeout.String(), b.Redact, *b.MaxCalls.Run, b.Rate, b.Retry, int(b.ResultBytes)}
	if diff := cmp.Diff([]any{"5s", []string{"iban"}, 3, "5/m", "never", 1024}, got); diff != "" {
		t.Errorf("SEC-F1: %s", diff)
	}
	if diff := cmp.Diff([]string{"iban"}, rules.Redacted()); diff != "" {
		t.Error(diff)
	}
}

// TestSameTarget checks which entries lead to the same server.
func TestSameTargetOfLayers(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string // an entry each
		want bool
	}{
		"equal":                            {"command: npx, args: [-y, server-x]", "command: npx, args: [-y, server-x]", true},
		"more arguments":                   {"command: npx, args: [-y, '@s/server-x']", "command: npx, args: ['@s/server-x@1.2', --write]", true},
		"a path of the runner":             {"command: npx, args: [server-x]", "command: /usr/bin/npx, args: [server-x]", true},
		"through a shell":                  {"command: sh, args: [-c, 'exec server-x']", "command: bash, args: [-c, 'server-x']", false},
		"the same shell":                   {"command: sh, args: [-c, 'exec server-x']", "command: sh, args: [-c, 'FOO=1 server-x --write']", true},
		"another package":                  {"command: npx, args: [server-x]", "command: npx, args: [server-y]", false},
		"another argument":                 {"command: npx, args: [server-x, /data]", "command: npx, args: [server-y, /data]", false},
		"a program":                        {"command: server-x, args: [stdio]", "command: server-x, args: [stdio, --all]", true},
		"a program of two folders":         {"command: /a/server, args: []", "command: /b/server, args: []", false},
		"a program by its path":            {"command: server-x", "command: /opt/server-x", true},
		"docker":                           {"command: docker, args: [run, -i, ghcr.io/x/y]", "command: docker, args: [run, --rm, -i, 'ghcr.io/x/y:latest']", true},
		"a URL":                            {"url: 'https://x.example/mcp'", "url: 'https://X.example:443/mcp/'", true},
		"http for https":                   {"url: 'https://x.example/mcp'", "url: 'http://x.example/mcp'", true},
		"a user in the URL":                {"url: 'https://x.example/mcp'", "url: 'https://me@x.example/mcp'", true},
		"a query":                          {"url: 'https://x.example/mcp'", "url: 'https://x.example/mcp?a=1'", true},
		"a final dot":                      {"url: 'https://x.example/mcp'", "url: 'https://x.example./mcp'", true},
		"this machine":                     {"url: 'http://localhost:8000/mcp'", "url: 'http://127.0.0.1:8000/mcp'", true},
		"this machine, IPv6":               {"url: 'http://localhost:8000/mcp'", "url: 'http://[::1]:8000/mcp'", true},
		"SEC-F1_this machine, short":       {"url: 'http://localhost:8000/mcp'", "url: 'http://127.1:8000/mcp'", true},
		"SEC-F1_this machine, a number":    {"url: 'http://localhost:8000/mcp'", "url: 'http://2130706433:8000/mcp'", true},
		"SEC-F1_this machine, hexadecimal": {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://0x7f000001:8000/mcp'", true},
		"SEC-F1_this machine, any address": {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://0.0.0.0:8000/mcp'", true},
		"SEC-F1_this machine, any IPv6":    {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://[::]:8000/mcp'", true},
		"SEC-F1_this machine, IPv4 in 6":   {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://[::ffff:127.0.0.1]:8000/mcp'", true},
		"SEC-F1_this machine, long IPv6":   {"url: 'http://[::1]:8000/mcp'", "url: 'http://[0:0:0:0:0:0:0:1]:8000/mcp'", true},
		"SEC-F1_this machine, 127.0.0.2":   {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://127.0.0.2:8000/mcp'", true},
		"SEC-F1_this machine, a name":      {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://bank.localhost:8000/mcp'", true},
		"SEC-F1_this machine, a final dot": {"url: 'http://127.0.0.1:8000/mcp'", "url: 'http://LOCALHOST.:8000/mcp'", true},
		"SEC-F1_percent-encoding":          {"url: 'https://x.example/mcp'", "url: 'https://x.example/%6Dcp'", true},
		"SEC-F1_dot segments":              {"url: 'https://x.example/mcp'", "url: 'https://x.example/a/%2e%2e/mcp'", true},
		"SEC-F1_two slashes":               {"url: 'https://x.example/mcp'", "url: 'https://x.example//mcp//'", true},
		"SEC-F1_a port with zeros":         {"url: 'https://x.example/mcp'", "url: 'https://x.example:00443/mcp'", true},
		"SEC-F1_a fragment":                {"url: 'https://x.example/mcp'", "url: 'https://x.example/mcp#a'", true},
		"a name like a number":             {"url: 'http://localhost:8000/mcp'", "url: 'http://1bank.example:8000/mcp'", false},
		"another port":                     {"url: 'http://localhost:8000/mcp'", "url: 'http://localhost:8001/mcp'", false},
		"another path":                     {"url: 'https://x.example/a'", "url: 'https://x.example/b'", false},
		"another host":                     {"url: 'https://x.example/a'", "url: 'https://y.example/a'", false},
		"a command and a URL":              {"url: 'https://x.example/a'", "command: x.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := layers(t, map[string]string{"PROJECT": "servers:\n  a: {" + tt.a + "}\n  b: {" + tt.b + "}\n"})
			if err != nil {
				t.Fatal(err)
			}
			if got := sameTarget(c.Servers["a"], c.Servers["b"]); got != tt.want || sameTarget(c.Servers["b"], c.Servers["a"]) != got {
				t.Errorf("%v, want %v both ways", got, tt.want)
			}
		})
	}
}

type adminFile struct {
	set  func(t *testing.T, dir string, o *Options)
	want string // "": it holds
}

// TestAdminFile checks when the administrator's file is refused. In this case no configuration is loaded at all.
func TestAdminFile(t *testing.T) {
	for name, tt := range map[string]adminFile{
		"it holds":                       {func(*testing.T, string, *Options) {}, ""},
		"SEC-F1_others write the file":   {func(t *testing.T, dir string, _ *Options) { chmod(t, dir+"/etc/tenon/config.yaml", 0o664) }, "can be written by others than root"},
		"SEC-F1_others write the folder": {func(t *testing.T, dir string, _ *Options) { chmod(t, dir+"/etc/tenon", 0o777) }, "can be written by others than root"},
		"SEC-F1_a link into another folder": {func(t *testing.T, dir string, o *Options) {
			if err := os.Mkdir(dir+"/open", 0o777); err != nil {
				t.Fatal(err)
			}
			chmod(t, dir+"/open", 0o777)
			if err := errors.Join(os.Rename(dir+"/etc/tenon/config.yaml", dir+"/open/c.yaml"), os.Symlink(dir+"/open/c.yaml", dir+"/etc/tenon/config.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "open can be written by others than root"},
		"SEC-F1_a link that leads nowhere": {func(t *testing.T, dir string, _ *Options) {
			if err := errors.Join(os.Remove(dir+"/etc/tenon/config.yaml"), os.Symlink("nowhere", dir+"/etc/tenon/config.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "no file"},
		"SEC-F1_a folder": {func(t *testing.T, dir string, _ *Options) {
			if err := errors.Join(os.Remove(dir+"/etc/tenon/config.yaml"), os.Mkdir(dir+"/etc/tenon/config.yaml", 0o755)); err != nil {
				t.Fatal(err)
			}
		}, "not a file"},
		"SEC-F1_owned by somebody else": {func(t *testing.T, dir string, _ *Options) {
			if os.Getuid() != 0 {
				t.Skip("only root gives files away")
			}
			if err := os.Chown(dir+"/etc/tenon/config.yaml", 1234, 0); err != nil {
				t.Fatal(err)
			}
		}, "not owned by root"},
		"SEC-F1_a folder of somebody else": {func(t *testing.T, dir string, _ *Options) {
			if os.Getuid() != 0 {
				t.Skip("only root gives files away")
			}
			if err := os.Chown(dir+"/etc/tenon", 1234, 0); err != nil {
				t.Fatal(err)
			}
		}, "not owned by root"},
		"SEC-F1_an .env of somebody else": {func(t *testing.T, dir string, _ *Options) {
			if err := os.WriteFile(dir+"/etc/tenon/.env", []byte("A=b\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			chmod(t, dir+"/etc/tenon/.env", 0o666)
		}, "can be written by others than root"},
		"SEC-F1_not YAML": {func(t *testing.T, dir string, _ *Options) {
			if err := os.WriteFile(dir+"/etc/tenon/config.yaml", []byte("a: [b"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "etc/tenon/config.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := loadWithAdmin(t, func(dir string, o *Options) { tt.set(t, dir, o) })
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// loadWithAdmin loads a configuration with an administrator's file. Before that, the function set can change the files
// or the options.
func loadWithAdmin(t *testing.T, set func(dir string, o *Options)) error {
	t.Helper()
	dir := write(t, map[string]string{"p/tenon.yaml": "name: p", "etc/tenon/config.yaml": "limits: {max_turns: 3}"})
	o := Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env("TENON_ADMIN", "x", "XDG_CONFIG_DIRS", "x"), Admin: filepath.Join(dir, "etc/tenon/config.yaml")}
	if os.Getuid() != 0 {
		o.CheckOwner = func(path string, st fs.FileInfo) error {
			if st.Mode().Perm()&0o022 != 0 {
				return errors.New(path + " can be written by others than root")
			}
			return nil
		}
	}
	set(dir, &o)
	c, err := Load(context.Background(), o)
	if err == nil && c.Limits.MaxTurns != 3 {
		t.Errorf("the administrator's limit does not hold: %d", c.Limits.MaxTurns)
	}
	return err
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestForbids checks the settings that the administrator's file can forbid.
func TestForbids(t *testing.T) {
	c, err := layers(t, map[string]string{"ADMIN": "trust: {forbid: [trust_flag, yes]}", "PROJECT": "name: p"})
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]bool{"trust_flag": true, "yes": true, "trust_env": false} {
		if got := c.Forbids(what); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if by := c.ForbiddenBy("yes"); !strings.HasSuffix(by, "etc/config.yaml") {
		t.Errorf("forbidden by %q", by)
	}
}

// TestLinkToUser checks a project with a link to the user's file. The user's entries must not get the project's .env
// file and working folder.
func TestLinkToUser(t *testing.T) {
	for name, link := range map[string]func(old, new string) error{"SEC-F1_a symbolic link": os.Symlink, "SEC-F1_a hard link": os.Link} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{".config/tenon/config.yaml": "servers: {a: {command: ./server, env: {T: '${T:-none}'}}}", "p/.env": "T=evil\n"})
			if err := link(filepath.Join(dir, ".config/tenon/config.yaml"), filepath.Join(dir, "p/tenon.yaml")); err != nil {
				t.Skip(err)
			}
			c, err := Load(context.Background(), Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env(), Admin: filepath.Join(dir, "none")})
			if err != nil {
				t.Fatal(err)
			}
			if a := c.Servers["a"]; a.Env["T"] != "none" || a.Cwd != filepath.Join(dir, ".config/tenon") || c.ServerID("a") != "user:a" {
				t.Errorf("%v in %s, %s", a.Env, a.Cwd, c.ServerID("a"))
			}
		})
	}
}

// TestLoosenedEntries checks that a project that may loosen everything can still not remove the user's entries.
func TestLoosenedEntries(t *testing.T) {
	c, err := layers(t, map[string]string{"USER": "servers: {a: {command: x}, b: {command: y, exclude: [z]}}\nsecrets: {s: {env: S}}\nlimits: {max_turns: 3, tokens: 9}\ntrust: {projects: [{path: ~/p, loosen: ['*']}]}",
		"PROJECT": "servers: {b: {command: y, exclude: []}, c: {command: z}}\nsecrets: {t: {env: T}}\nlimits: {max_turns: 30}"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, c.AllServerNames(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if len(c.Secrets) != 2 || c.Limits.MaxTurns != 30 || c.Limits.Tokens != 9 {
		t.Errorf("%d secrets, limits %+v", len(c.Secrets), c.Limits)
	}
	for _, f := range c.Servers["b"].Filters {
		if len(f.Exclude) > 0 {
			t.Errorf("what may be loosened holds: %+v", f)
		}
	}
}
