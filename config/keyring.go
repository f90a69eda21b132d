package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/keyring"
	"github.com/tenonhq/tenon/servers"
)

// Ring is a store of secrets: the system's keyring, or a replacement in tests. Get returns "" if there is no such
// secret.
type Ring interface {
	Get(service, user string) (string, error)
	Set(service, user, value string) error
}

// promptService is the service in the keyring under which answers to prompts are kept.
const promptService = "tenon"

// given contains the answers that a person gave in this process.
type given struct {
	mu     sync.Mutex
	values map[string]string
}

// keyring returns the keyring, or nil if there is none.
func (c *Config) keyring() Ring {
	if c.ring != nil {
		return c.ring
	}
	if r := keyring.Open(c.variable); r != nil {
		return r
	}
	return nil
}

// fromKeyring reads a secret whose source is keyring or prompt. key is the path of the entry.
func (c *Config) fromKeyring(s SecretSource, key string) (string, error) {
	if c.given != nil {
		c.given.mu.Lock()
		v := c.given.values[key]
		c.given.mu.Unlock()
		if v != "" {
			return v, nil
		}
	}
	ring := c.keyring()
	switch {
	case ring == nil && s.Prompt != "":
		return "", nil
	case ring == nil:
		return "", fmt.Errorf("this machine has none")
	case s.Prompt != "":
		return ring.Get(promptService, c.promptUser(key))
	}
	service, user, _ := strings.Cut(s.Keyring, "/")
	return ring.Get(service, user)
}

// promptUser returns the user name in the keyring for an answer. It differs between projects.
func (c *Config) promptUser(key string) string { return c.Path + " " + key }

// Question is a question to a person for a secret.
type Question struct {
	Text   string
	Hidden bool // the input is not shown

	key string
}

// Questions returns the secrets with a prompt that servers, agents and the first model use and that have no value
// yet, sorted by name. It returns the errors of the keyring.
func (c *Config) Questions() ([]Question, error) {
	asked := map[string]SecretSource{}
	use := func(path string) {
		s, ok := c.SecretAt(path)
		if ref := c.secrets[path]; ref.name != "" {
			path = c.keyOf(ref.name, s)
		}
		if ok && s.Prompt != "" {
			asked[path] = s
		}
	}
	for name, s := range c.Servers {
		if !s.IsEnabled() {
			continue
		}
		if s.Auth.Type != "" && s.Auth.Type != servers.AuthNone {
			use("servers." + name + ".auth.secret")
			use("servers." + name + ".auth.client_secret")
			use("servers." + name + ".auth.private_key")
			use("servers." + name + ".auth.assertion")
		}
		for path, n := range c.late {
			if !strings.HasPrefix(path, "servers."+name+".") {
				continue
			}
			for _, secret := range secretsIn(n.Val) {
				if s, _ := c.secretFor(secret, n.Src); s.Prompt != "" {
					asked[c.keyOf(secret, s)] = s
				}
			}
		}
	}
	for i, name := range c.ModelNames() {
		if i == 0 || slices.ContainsFunc(c.AgentNames(), func(a string) bool { return c.Agents[a].Model == name }) {
			use("models." + name + ".api_key")
		}
	}
	var out []Question
	for key, s := range asked {
		v, err := c.fromKeyring(s, key)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeAuth, "the keyring cannot be read: %w", err)
		}
		if v == "" {
			out = append(out, Question{Text: s.Prompt, Hidden: s.Password, key: key})
		}
	}
	slices.SortFunc(out, func(a, b Question) int { return strings.Compare(a.key, b.key) })
	return out, nil
}

// Answer sets the value of a secret that a person was asked for. It stores the value in the keyring, or, if there is
// none, keeps it until the process ends. kept reports whether it is in the keyring.
func (c *Config) Answer(q Question, value string) (kept bool, err error) {
	c.given.mu.Lock()
	if c.given.values == nil {
		c.given.values = map[string]string{}
	}
	c.given.values[q.key] = value
	c.given.mu.Unlock()
	ring := c.keyring()
	if ring == nil {
		return false, nil
	}
	if err := ring.Set(promptService, c.promptUser(q.key), value); err != nil {
		return false, tenon.Errorf(tenon.CodeAuth, "the keyring does not take the answer: %w", err)
	}
	return true, nil
}

// secretsIn returns the names of the secrets to which a text refers. It ignores escaped dollar signs ($$).
func secretsIn(s string) []string {
	if !strings.Contains(s, "${secret:") {
		return nil
	}
	var names []string
	for _, m := range tree.SecretVariable().FindAllStringSubmatch(strings.ReplaceAll(s, "$$", ""), -1) {
		names = append(names, m[1])
	}
	return names
}

// withSecret records a text that contains a secret. If no secret is allowed at this place, it reports an error and
// returns true.
func (d *decoder) withSecret(n *tree.Node, p place) (refused bool) {
	if !takeSecrets[p.pattern] {
		if expands[p.pattern] {
			d.Add(n, p.path, "a secret is not allowed here",
				"secrets are allowed in env, headers, args and config of a server")
			return true
		}
		return false
	}
	d.late[p.path] = n
	return false
}

// fillSecrets replaces the references to secrets in a server's entry before the server is started.
func (c *Config) fillSecrets(ctx context.Context, name string, s *servers.Config) error {
	f := c.filler(ctx)
	base := "servers." + name
	s.Args = slices.Clone(s.Args)
	for i, v := range s.Args {
		s.Args[i] = f.text(tree.Index(base+".args", i), v)
	}
	s.Env, s.Headers = f.texts(base+".env", s.Env), f.texts(base+".headers", s.Headers)
	s.Settings = f.settings(base+".config", s.Settings)
	s.Secrets = append(s.Secrets, f.used...)
	return f.err
}

// filler replaces references to secrets in texts.
type filler struct {
	c    *Config
	ctx  context.Context // of the call that uses the filler
	used []tenon.Secret
	err  error // the first one
}

func (c *Config) filler(ctx context.Context) *filler {
	return &filler{c: c, ctx: ctx}
}

func (f *filler) text(path, value string) string {
	n := f.c.late[path]
	if n == nil {
		return value
	}
	var vars tree.Variables
	if own := cmp.Or(n.Src.Vars, f.c.vars); own != nil {
		vars = *own
	}
	vars.Secret = func(name string) string {
		v, err := f.c.resolveFor(f.ctx, name, n.Src)
		if err != nil && f.err == nil {
			f.err = err
		}
		f.used = append(f.used, v)
		return v.Reveal()
	}
	return vars.Expand(n.Val, n, path, &tree.Sink{})
}

func (f *filler) texts(path string, m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = f.text(path+"."+k, v)
	}
	return out
}
