package config

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/react"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// Config is tenon.yaml. As [Load] returns it, every entry has its defaults,
// variables are expanded, and paths are absolute. Secrets are empty: take
// entries with [Config.Server] and [Config.Model] to have them resolved. A Go
// program may fill in a zero Config itself, secrets included.
type Config struct {
	// Address of the JSON Schema, for editors; never read.
	Schema string `yaml:"$schema"`
	// Format of the file.
	Version int `yaml:"version" default:"1"`
	// Name of the project.
	Name string `yaml:"name" default:"folder name"`
	// Set of other defaults; a written value always wins. strict allows the commands npx, node, uvx and docker only, https, and no literal tokens; the others are those of the systems whose files are read: docs/reference/imports.md.
	Profile string `yaml:"profile" enum:"default,strict,researchai,holodeck,trustgraph,aidk,knime" default:"default"`
	// Where to read secrets: name -> env, file, command, keyring or prompt; never a literal value. A server's `env`, `headers` and `args` take one as `${secret:NAME}`. A secret is read when something that uses it starts.
	Secrets map[string]SecretSource `yaml:"secrets"`
	// MCP servers.
	Servers map[string]servers.Config `yaml:"servers"`
	// What is said about single tools; the key is the name that the model sees.
	Tools map[string]catalog.Tool `yaml:"tools"`
	// Tables of tools, whose rows become tools of this configuration, beside those that `tools` names, and their addresses servers: as `tenon run --table` takes them.
	ToolTables []ToolTable `yaml:"tool_tables"`
	// From when on a model looks for tools instead of being told of all of them.
	ToolSearch catalog.Search `yaml:"tool_search"`
	// Language models. The first one is the default.
	Models map[string]model.Config `yaml:"models"`
	// File of prices that go over the built-in ones, in the form that `tenon models prices` prints.
	Prices string `yaml:"prices" default:"the built-in table"`
	// Agents. `default` is used where none is named.
	Agents map[string]agent.Config `yaml:"agents"`
	// Limits of a run, for all agents.
	Limits agent.Limits `yaml:"limits"`
	// What runs may use together: those of a session, of a day, of a principal on a day.
	Budgets agent.Budgets `yaml:"budgets"`
	// Rules for tool calls. The most specific block wins, key by key: tools.NAME.policy, then servers.NAME.policy, then policy.defaults.
	Policy policy.Config `yaml:"policy"`
	// How Arrow tables are read and written.
	Tables table.Config `yaml:"tables"`
	// Where `tenon servers search` looks for servers.
	Registry Registry `yaml:"registry"`
	// Who works on runs.
	Engine Engine `yaml:"engine"`
	// Where runs are kept.
	Store Store `yaml:"store"`
	// What `tenon serve` offers over HTTP.
	Serve Serve `yaml:"serve"`
	// Logs, counters and traces.
	Telemetry Telemetry `yaml:"telemetry"`

	// File is the file as the user would name it, Path the absolute one (empty
	// for stdin, and where there is only the user's own file), Dir its folder.
	File string `yaml:"-"`
	Path string `yaml:"-"`
	Dir  string `yaml:"-"`
	// Found says that the file was found and not named: a person has to agree
	// before its commands are started and its addresses are called.
	Found bool `yaml:"-"`
	// Warnings are in file order.
	Warnings []Error `yaml:"-"`

	tree    *node // as written, the files laid over each other
	read    []string
	vars    *variables
	nodes   map[string]*node
	order   map[string][]string
	secrets map[string]SecretSource
	added   map[string]bool              // paths of servers and tools that no file says
	tabled  bool                         // the tables of ToolTables are read, or are not to be
	rows    map[string]*node             // paths of servers and tools that those brought → where the file names the table
	tables  map[string]string            // server → the table that names it
	taken   []takenTable                 // of ToolTables
	flows   map[string]TableWorkflow     // of tables, by the names of the tools
	late    map[string]*node             // path → a text with secrets in it
	ring    Ring                         // nil: that of the system
	given   *given                       // what was asked for
	envs    map[string]map[string]string // server → what its env_file holds
}

// SecretSource says where the value of a secret is read: exactly one of its
// keys is set, but for Password, which goes with Prompt.
type SecretSource struct {
	// Environment variable.
	Env string `yaml:"env"`
	// File: the text in it, or a JSON object with login and password. A mode wider than 0600 warns.
	File string `yaml:"file"`
	// Program and arguments; the value is the first line of its output. Never through a shell.
	Command []string `yaml:"command"`
	// SERVICE/USER in the system's keyring.
	Keyring string `yaml:"keyring"`
	// What to ask for on a terminal, once; the answer is kept in the system's keyring where there is one.
	Prompt string `yaml:"prompt"`
	// prompt: what is typed is not shown.
	Password bool `yaml:"password" default:"false"`

	name string // a reference to an entry of secrets instead
}

// Registry is a registry of MCP servers: the official one, or a company's own.
type Registry struct {
	// Its address; a registry speaks the API of the official one.
	URL string `yaml:"url"`
	// Sent as Authorization: Bearer.
	Secret tenon.Secret `yaml:"secret"`
}

// Store says where runs are kept.
type Store struct {
	// SQLite file.
	Path string `yaml:"path" default:".tenon/tenon.db"`
	// How long a session is kept after its last change, such as `30d`. `tenon serve` deletes older ones every hour, `tenon sessions prune` by hand; never one
	// with a run that has not ended, or that a younger session goes on from.
	Retention time.Duration `yaml:"retention" default:"for ever"`
	// Whether arguments and results of tool calls are kept. A run goes on from what is kept of it, so there is no other value than true: `redact` and `policy` encrypt what
	// they name, `retention` and `tenon sessions delete` take away what is old.
	Audit *bool `yaml:"audit" default:"true"`
	// Names of arguments, of all tools and at every depth, that are encrypted in the store and masked in logs, records and exports, beside those that a `redact` of a
	// policy names. Results are the policy's alone: what is masked there the model does not get.
	Redact []string `yaml:"redact" default:"[]"`
}

// Engine says who works on runs.
type Engine struct {
	// local: tenon's own processes, on one machine.
	Kind string `yaml:"kind" enum:"local" later:"temporal" default:"local"`
}

// Telemetry says what tenon tells about itself.
type Telemetry struct {
	// Least level that is logged.
	LogLevel string `yaml:"log_level" enum:"debug,info,warn,error" default:"warn"`
	// Form of the log on stderr.
	LogFormat string `yaml:"log_format" enum:"text,json" default:"text"`
	// Whether `tenon serve` gives its counters at /metrics, in Prometheus' text form.
	Metrics *bool `yaml:"metrics" default:"true"`
	// Address of an OpenTelemetry collector over HTTP, such as `http://127.0.0.1:4318`: traces and metrics are sent there in OTLP/JSON, and servers are told the trace that
	// a call belongs to. Texts, arguments and results are no part of them.
	OTLP string `yaml:"otlp" default:"none"`
}

// HasMetrics reports whether counters are given at /metrics.
func (t Telemetry) HasMetrics() bool { return t.Metrics == nil || *t.Metrics }

// WithDefaults returns a copy with the values that are absent filled in.
func (t Telemetry) WithDefaults() Telemetry {
	t.LogLevel = cmp.Or(t.LogLevel, "warn")
	t.LogFormat = cmp.Or(t.LogFormat, "text")
	if t.Metrics == nil {
		on := true
		t.Metrics = &on
	}
	return t
}

// ServerNames returns the names of the servers that are enabled, in file order.
func (c *Config) ServerNames() []string {
	return slices.DeleteFunc(names(c, "servers", c.Servers), func(n string) bool { return !c.Servers[n].IsEnabled() })
}

// AllServerNames returns the names of all servers in file order, those that are
// switched off as well.
func (c *Config) AllServerNames() []string { return names(c, "servers", c.Servers) }

// ModelNames returns the names of the models in file order; the first is the default.
func (c *Config) ModelNames() []string { return names(c, "models", c.Models) }

// AgentNames returns the names of the agents in file order.
func (c *Config) AgentNames() []string { return names(c, "agents", c.Agents) }

// ToolNames returns the keys of tools in file order.
func (c *Config) ToolNames() []string { return names(c, "tools", c.Tools) }

// names returns the keys of a map in file order, then those that a Go program
// added, sorted.
func names[V any](c *Config, kind string, m map[string]V) []string {
	has := func(n string) bool { _, ok := m[n]; return ok }
	var out []string
	for _, n := range c.order[kind] {
		if has(n) {
			out = append(out, n)
		}
	}
	read := len(out)
	for n := range m {
		if !slices.Contains(out[:read], n) {
			out = append(out, n)
		}
	}
	slices.Sort(out[read:])
	return out
}

// Origin returns "FILE:LINE" of a value, such as servers.github.timeout, "profile
// NAME" where it comes from that, or "default" where nothing says it.
func (c *Config) Origin(path string) string {
	if n := c.nodes[path]; n != nil {
		if n.src.profile {
			return n.src.label
		}
		return fmt.Sprintf("%s:%d", n.src.label, n.line)
	}
	if n := c.rowNode(path); n != nil {
		return fmt.Sprintf("%s:%d", n.src.label, n.line)
	}
	if i := strings.LastIndex(path, ".limits."); i > 0 && strings.HasPrefix(path, "agents.") {
		return c.Origin(path[i+1:]) // an agent's limits stand above the global ones
	}
	return "default"
}

// FromUser reports whether an entry, such as servers.github, stands in the user's
// own file and depends on nothing else: no variable is expanded in it, which
// another file's .env could set.
func (c *Config) FromUser(path string) bool {
	n := c.node(path)
	return n != nil && n.src.user && len(c.Variables(path)) == 0
}

// node is where an entry is said: in a file, or by the table that a file names.
func (c *Config) node(path string) *node {
	if n := c.nodes[path]; n != nil {
		return n
	}
	return c.rows[path]
}

// Server returns a server's entry ready to start: its secret is resolved, and
// Env holds what env_file and env say. The error has code not_found (with the
// known names), invalid (not enabled), or that of [Config.Resolve].
func (c *Config) Server(ctx context.Context, name string) (servers.Config, error) {
	s, ok := c.Servers[name]
	if !ok {
		return s, noEntry("server", name, names(c, "servers", c.Servers))
	}
	s = s.WithDefaults()
	if !s.IsEnabled() {
		return s, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled: set servers.%s.enabled to true in %s", name, name, c.File)
	}
	if file := c.envs[name]; len(file) > 0 {
		env := make(map[string]string, len(file)+len(s.Env))
		for k, v := range file {
			env[k] = v
		}
		for k, v := range s.Env {
			env[k] = v
		}
		s.Env = env
	}
	if err := c.fillSecrets(ctx, name, &s); err != nil {
		return s, err
	}
	for key, into := range map[string]*tenon.Secret{"secret": &s.Auth.Secret, "client_secret": &s.Auth.ClientSecret,
		"private_key": &s.Auth.PrivateKey, "assertion": &s.Auth.Assertion} {
		path := "servers." + name + ".auth." + key
		if ref, ok := c.secrets[path]; ok && s.Auth.Type != servers.AuthNone {
			var err error
			if *into, err = c.resolve(ctx, ref, path); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// RegistryToken returns the token of the registry, empty where none is configured.
// Errors are those of [Config.Resolve].
func (c *Config) RegistryToken(ctx context.Context) (tenon.Secret, error) {
	ref, ok := c.secrets["registry.secret"]
	if !ok {
		return c.Registry.Secret, nil
	}
	return c.resolve(ctx, ref, "registry.secret")
}

// Model returns a model's entry with its secret resolved; "" is the first
// model. Where the file names no api_key it comes from the provider's usual
// variable, but only if the address is the provider's own; it may stay empty.
// Errors are those of [Config.Server].
func (c *Config) Model(ctx context.Context, name string) (model.Config, error) {
	all := c.ModelNames()
	if name == "" && len(all) > 0 {
		name = all[0]
	}
	m, ok := c.Models[name]
	if !ok {
		return m, noEntry("model", name, all)
	}
	m = c.KeylessModel(name)
	if ref, ok := c.secrets["models."+name+".api_key"]; ok {
		var err error
		if m.APIKey, err = c.resolve(ctx, ref, "models."+name+".api_key"); err != nil {
			return m, err
		}
	} else if p, ok := model.Lookup(m.Provider); ok && m.APIKey.IsZero() && p.KeyEnv != "" && m.BaseURL == p.BaseURL {
		key, _ := c.variable(p.KeyEnv)
		m.APIKey = tenon.NewSecret(key)
	}
	return m, nil
}

// KeylessModel returns an entry of models as Model does, without its key: no place of a
// secret is looked at, and no program started.
func (c *Config) KeylessModel(name string) model.Config {
	m := c.Models[name]
	m.Name = name
	return m.WithDefaults()
}

// Agent returns an agent's entry: its limits stand above the global ones, its model is
// filled in where there is one, and Instructions.Text holds the text of its file, as
// Template does for the prompt and ResponseFormat.Schema for the schema. The name "" is
// the entry default, else the only entry, else an agent made of defaults. The error has
// code not_found or config.
func (c *Config) Agent(name string) (agent.Config, error) {
	all := c.AgentNames()
	if name == "" {
		if name = "default"; len(all) == 1 {
			name = all[0]
		}
	}
	a, ok := c.Agents[name]
	if !ok && (name != "default" || len(all) > 0) {
		return a, noEntry("agent", name, all)
	}
	a.Limits = a.Limits.Over(c.Limits)
	a = a.WithDefaults()
	if first := c.ModelNames(); a.Model == "" && len(first) > 0 {
		a.Model = first[0]
	}
	if f := a.Instructions.File; f != "" {
		b, err := readFile(f, maxBytes)
		if err != nil {
			return a, &tenon.Error{Code: tenon.CodeConfig, Err: err,
				Message: fmt.Sprintf("agents.%s.instructions.file: %s", name, reason(err))}
		}
		a.Instructions.Text = string(b)
	}
	if f := a.ResponseFormat.File; f != "" {
		schema, err := ReadSchema(f)
		if err != nil {
			return a, &tenon.Error{Code: tenon.CodeConfig, Err: err, Message: fmt.Sprintf("agents.%s.response_format.file: %s", name, err)}
		}
		a.ResponseFormat.Schema = schema
	}
	if a.Prompt == agent.PromptDefault || a.Prompt == agent.PromptTrustGraph || a.Template != "" {
		return a, nil
	}
	text, err := template(a.Prompt)
	if a.Template = text; err != nil {
		return a, &tenon.Error{Code: tenon.CodeConfig, Err: err, Message: fmt.Sprintf("agents.%s.prompt: %s", name, reason(err))}
	}
	return a, nil
}

// maxTemplate bounds a template in bytes: each run keeps the one that it began with.
const maxTemplate = 64 << 10

// template reads the file of a prompt and tries it out.
func template(file string) (string, error) {
	b, err := readFile(file, maxTemplate)
	if err != nil {
		return "", err
	}
	_, err = react.New(react.Config{Template: string(b)})
	return string(b), err
}

// variable looks a name up where the file's variables are looked up.
func (c *Config) variable(name string) (string, bool) {
	if c.vars == nil { // made by a Go program, not by Load
		return os.LookupEnv(name)
	}
	return c.vars.get(name)
}

func noEntry(kind, name string, known []string) error {
	have := "the file names none"
	if len(known) > 0 {
		have = kind + "s: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	}
	return tenon.Errorf(tenon.CodeNotFound, "no %s '%s'; %s", kind, name, have)
}

// readFile reads a regular file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case st.Size() > limit:
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}
