package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config/tree"
)

// expands holds the patterns of the values in which variables are expanded.
var expands = map[string]bool{
	"serve.replica[]": true, "serve.replica_url": true,
	"tools.NAME.request.url": true, "tools.NAME.request.headers.NAME": true,
	"servers.NAME.command": true, "servers.NAME.args[]": true, "servers.NAME.cwd": true, "servers.NAME.env.NAME": true,
	"servers.NAME.env_file": true, "servers.NAME.url": true, "servers.NAME.headers.NAME": true,
	"servers.NAME.auth.header":    true,
	"servers.NAME.auth.client_id": true, "servers.NAME.auth.scopes[]": true, "servers.NAME.auth.issuer": true,
	"models.NAME.base_url": true, "models.NAME.headers.NAME": true, "models.NAME.path": true,
	"agents.NAME.instructions.file": true, "agents.NAME.response_format.file": true, "agents.NAME.prompt": true,
	"store.path": true, "secrets.NAME.file": true, "prices": true,
	"servers.NAME.roots[]": true, "registry.url": true, "telemetry.otlp": true,
	"servers.NAME.principals.NAME.headers.NAME": true, "servers.NAME.principals.NAME.env.NAME": true,
	"servers.NAME.principals.NAME.auth.header": true,
}

// expandsJSON contains the patterns of values of any form. Variables and secrets are replaced in all texts inside
// them.
var expandsJSON = map[string]bool{"servers.NAME.config.NAME": true, "models.NAME.tools": true,
	"agents.NAME.provider_tools": true}

// takeSecrets contains the patterns of the values in which ${secret:NAME} is replaced. Commands and addresses are not
// among them, because others could see the secret there.
var takeSecrets = map[string]bool{"servers.NAME.env.NAME": true, "servers.NAME.headers.NAME": true,
	"servers.NAME.args[]":                       true,
	"servers.NAME.principals.NAME.headers.NAME": true, "servers.NAME.principals.NAME.env.NAME": true}

// secretKinds are the sources from which secrets are read.
var secretKinds = []string{"env", "file", "command", "keyring", "prompt"}

// isPath holds the patterns of the values that are paths: ~/ is the home
// folder, and a relative path is relative to the folder of its file.
var isPath = map[string]bool{
	"servers.NAME.cwd": true, "servers.NAME.env_file": true, "models.NAME.path": true,
	"agents.NAME.instructions.file":    true,
	"agents.NAME.response_format.file": true, "agents.NAME.prompt": true, "prices": true, "store.path": true,
	"secrets.NAME.file": true, "models.NAME.api_key.file": true, "servers.NAME.auth.secret.file": true,
	"store.postgres.dsn.file": true, "store.postgres.direct.file": true,
	"serve.auth.secret.file": true, "serve.auth.tokens.NAME.file": true, "registry.secret.file": true,
	"servers.NAME.principals.NAME.auth.secret.file": true,
	"servers.NAME.auth.client_secret.file":          true, "servers.NAME.auth.private_key.file": true,
	"servers.NAME.auth.assertion.file": true, "servers.NAME.roots[]": true, "tools.NAME.path": true,
	"agents.NAME.data_inputs[]": true,
	"tool_tables[].path":        true, "trust.projects[].path": true,
}

// words lists values of path keys that are words and no paths.
var words = map[string][]string{"agents.NAME.prompt": {agent.PromptDefault, agent.PromptTrustGraph}}

// bounds contains the minimum and maximum of keys whose structs do not set them by tags.
var bounds = map[string][2]float64{
	"models.NAME.temperature": {0, 2}, "models.NAME.top_p": {0, 1}, "models.NAME.retries": {0, 10},
	"models.NAME.max_tokens": {1, 1 << 31},
}

// laterKeys lists keys of the format, by the Go type of their map, that only later versions support. They are errors,
// like unknown keys, because a key without effect would be a broken promise.
var laterKeys = map[string][]string{
	"agent.Config":  {"history"},
	"config.Engine": {"address", "namespace"},
}

// insteadOf is the hint for a later key.
var insteadOf = map[string]string{
	"address":   "it is a key of engine.temporal",
	"namespace": "it is a key of engine.temporal",
}

// unknown reports a key that no field has.
func (d *decoder) unknown(k *tree.Node, p place, t reflect.Type, known []field) {
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	hint := "known keys: " + strings.Join(names, ", ")
	if slices.Contains(laterKeys[t.String()], k.Val) {
		hint = "not supported by this version yet"
		if other := insteadOf[k.Val]; other != "" {
			hint += "; " + other
		}
	} else if near := tenon.Nearest(k.Val, append(names, laterKeys[t.String()]...)); near != "" {
		hint = "did you mean '" + near + "'?"
	}
	switch {
	case t == reflect.TypeFor[SecretSource]() && k.Val == "secret" && p.pattern != "secrets.NAME":
		hint = "an entry of secrets is named without it: write NAME in place of {secret: NAME}"
	case (k.Val == "then" || k.Val == "action" || k.Val == "effect") && slices.Contains(names, "verdict"):
		hint = "did you mean 'verdict'?"
	case k.Val == "prefix" && (p.pattern == "servers.NAME" || p.pattern == "servers.NAME.naming"):
		hint = "write naming: {template: \"PREFIX_{tool}\"}"
	}
	d.Add(k, tree.Join(p.path, k.Val), "unknown key", hint)
}

// namedMaps are the maps whose keys are the user's names.
var namedMaps = map[string]bool{"servers": true, "tools": true, "models": true, "agents": true, "secrets": true,
	"schedules": true, "policy.groups": true, "gateway.endpoints": true}
