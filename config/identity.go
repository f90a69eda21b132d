package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/trust"
)

// ServerIdentity returns a digest of everything that determines a server's connection: program, address, settings,
// the content of env_file and of scripts, and the sources of secrets, with the values of variables and files. It runs
// no program and asks nobody. So a secret from a program, the keyring or a person is represented by its source. It
// returns "" for an unknown server.
func (c *Config) ServerIdentity(name string) string {
	entry, ok := c.Servers[name]
	if !ok {
		return ""
	}
	return c.serverIdentity(name, entry)
}

// ConnectionIdentity is ServerIdentity, but does not depend on which folders roots contains, because they can change
// while a connection is open. It does depend on whether there are any, because that is declared to the server at
// connect. For entries with share: true the folders count, because other entries use the same connection.
func (c *Config) ConnectionIdentity(name string) string {
	entry, ok := c.Servers[name]
	if !ok {
		return ""
	}
	if len(entry.Roots) > 0 && !entry.Share {
		entry.Roots = []string{""}
	}
	return c.serverIdentity(name, entry)
}

func (c *Config) serverIdentity(name string, entry servers.Config) string {
	secrets := map[string]any{}
	path := "servers." + name + "."
	for _, key := range []string{"secret", "client_secret", "private_key", "assertion"} {
		if s, ok := c.SecretAt(path + "auth." + key); ok {
			secrets["auth."+key] = c.sourceIdentity(s)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(c.late)) {
		rest, ok := strings.CutPrefix(at, path)
		if !ok || strings.HasPrefix(rest, "principals.") { // does not belong to the shared connection
			continue
		}
		for _, ref := range c.SecretRefs(at) {
			s, _ := c.secretFor(ref, c.late[at].Src)
			secrets[rest+" "+ref] = c.sourceIdentity(s)
		}
	}
	b, err := json.Marshal([]any{entry.Identity(), c.envs[name], secrets, c.scriptSums("servers." + name)})
	if err != nil {
		return "" // cannot happen: the values are strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// scriptSums returns the digests of the scripts of a command, by path. A server whose script has changed is another
// server.
func (c *Config) scriptSums(path string) map[string]string {
	if c.files == nil {
		return nil
	}
	sums := map[string]string{}
	for _, file := range c.CommandFiles(path) {
		if s, err := c.files.look(file, trust.MaxBytes); err == nil {
			sums[file] = s.digest
		}
	}
	return sums
}

// sourceIdentity returns values that identify a secret, without running a program or asking a person.
func (c *Config) sourceIdentity(s SecretSource) []any {
	value := ""
	switch {
	case s.Env != "":
		value, _ = c.variableOf(s, s.Env)
	case s.File != "" && !s.hasUnset():
		b, err := readFile(s.File, maxSecret)
		if err != nil {
			b = []byte(err.Error()) // the error is reported when the secret is used
		}
		value = string(b)
	}
	return []any{s.Env, s.File, s.Command, s.Keyring, s.Prompt, value}
}
