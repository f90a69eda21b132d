package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// ServerIdentity tells apart the versions of a server's entry that do not lead to the
// same connection: other programs, addresses and settings, another content of env_file,
// secrets that are read elsewhere, and those of variables and files that are not what
// they were. Nothing is run and nobody is asked, so that a secret of a program, of the
// keyring or of a person counts by where it is read. It is a digest; "" for no server.
func (c *Config) ServerIdentity(name string) string {
	entry, ok := c.Servers[name]
	if !ok {
		return ""
	}
	secrets := map[string]any{}
	path := "servers." + name + "."
	for _, key := range []string{"secret", "client_secret", "private_key", "assertion"} {
		if s, ok := c.SecretAt(path + "auth." + key); ok {
			secrets["auth."+key] = c.sourceIdentity(s)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(c.late)) {
		rest, ok := strings.CutPrefix(at, path)
		if !ok || strings.HasPrefix(rest, "principals.") { // who has connections of its own
			continue
		}
		for _, ref := range c.SecretRefs(at) {
			secrets[rest+" "+ref] = c.sourceIdentity(c.Secrets[ref])
		}
	}
	b, err := json.Marshal([]any{entry.Identity(), c.envs[name], secrets})
	if err != nil {
		return "" // cannot be: texts
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// sourceIdentity is what a secret is known by without running or asking anything.
func (c *Config) sourceIdentity(s SecretSource) []any {
	value := ""
	switch {
	case s.Env != "":
		value, _ = c.variable(s.Env)
	case s.File != "":
		b, err := readFile(s.File, maxSecret)
		if err != nil {
			b = []byte(err.Error()) // whoever needs it is told
		}
		value = string(b)
	}
	return []any{s.Env, s.File, s.Command, s.Keyring, s.Prompt, value}
}
