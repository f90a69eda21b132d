package config

import (
	"reflect"
	"slices"
	"strings"
)

// expands holds the patterns of the values in which variables are expanded.
var expands = map[string]bool{
	"servers.NAME.command": true, "servers.NAME.args[]": true, "servers.NAME.cwd": true, "servers.NAME.env.NAME": true,
	"servers.NAME.env_file": true, "servers.NAME.url": true, "servers.NAME.headers.NAME": true, "servers.NAME.auth.header": true,
	"models.NAME.base_url": true, "models.NAME.headers.NAME": true, "models.NAME.path": true,
	"agents.NAME.instructions.file": true, "store.path": true, "secrets.NAME.file": true,
}

// isPath holds the patterns of the values that are paths: ~/ is the home
// folder, and a relative path is relative to the folder of its file.
var isPath = map[string]bool{
	"servers.NAME.cwd": true, "servers.NAME.env_file": true, "models.NAME.path": true, "agents.NAME.instructions.file": true,
	"store.path": true, "secrets.NAME.file": true, "models.NAME.api_key.file": true, "servers.NAME.auth.secret.file": true,
}

// bounds holds the least and the largest number of keys whose structs do not
// say it by tags.
var bounds = map[string][2]float64{
	"models.NAME.temperature": {0, 2}, "models.NAME.top_p": {0, 1}, "models.NAME.retries": {0, 10},
	"models.NAME.max_tokens": {1, 1 << 31},
}

// laterKeys names the keys of the format, by the Go type of their map, that
// come with later versions. They are errors, like unknown ones, because a key
// that does nothing would be a broken promise.
var laterKeys = map[string][]string{
	"config.Config": {"profile", "tool_tables", "tables", "engine", "serve", "mcpServers"},
	"servers.Config": {"encoding", "config", "load_prompts", "load_resources", "prompts_as_tools", "resource_links",
		"result_format", "lifecycle", "discover", "restart", "share", "sampling", "sampling_model", "log_level", "schema",
		"where", "naming", "transform", "provider_options", "is_retrieval", "defer", "registry_name"},
	"servers.Auth":        {"client_id", "client_secret", "scopes", "callback_port"},
	"config.SecretSource": {"keyring", "prompt", "password"},
	"policy.Tool": {"kind", "enabled", "title", "arguments", "schema", "arguments_mode", "validate", "groups", "states",
		"next_state", "defer", "provider_options", "path", "request", "template", "model", "agent"},
	"policy.Block": {"max_calls", "rate", "concurrency", "result_bytes", "result_tokens", "on_large_result", "cache",
		"redact", "cost"},
	"policy.Config": {"commands", "urls", "rules", "groups", "pins", "env_unresolved", "literal_secrets"},
	"agent.Config": {"mode", "prompt", "additional_context", "groups", "state", "data_inputs", "data_message_prefix",
		"history", "errors", "response_format", "policy"},
	"agent.Limits":     {"limit_prompt", "tokens", "cost"},
	"config.Store":     {"dsn", "audit", "redact"},
	"config.Telemetry": {"metrics", "otlp"},
}

// unknown reports a key that no field has.
func (d *decoder) unknown(k *node, p place, t reflect.Type, known []field) {
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	hint := "known keys: " + strings.Join(names, ", ")
	if slices.Contains(laterKeys[t.String()], k.val) {
		hint = "not supported by this version yet"
	} else if near := Nearest(k.val, append(names, laterKeys[t.String()]...)); near != "" {
		hint = "did you mean '" + near + "'?"
	}
	d.add(k, join(p.path, k.val), "unknown key", hint)
}

// Nearest returns the name that is most like s, or "" where none is near.
func Nearest(s string, names []string) string {
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(s))
	}
	best, at := "", 1+max(1, min(len(s), 12)/3)
	for _, n := range names {
		if dist := distance(plain(s), plain(n), at); dist < at {
			best, at = n, dist
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that make b of a. It gives up at limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := func(n int) []int { return make([]int, n+1) }
	before, prev, cur := row(len(b)), row(len(b)), row(len(b))
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
