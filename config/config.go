package config

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/protect"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/react"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/schedule"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// Error is a mistake in a file, or a warning about it; see [tree.Error].
type Error = tree.Error

// Errors contains all mistakes, in file order. It unwraps to a *tenon.Error of code config.
type Errors = tree.Errors

// Config is tenon.yaml. In the result of [Load], every entry has its defaults, variables are expanded, and paths are
// absolute. Secrets are empty: [Config.Server] and [Config.Model] return entries with their secrets. A Go program may
// fill in a zero Config itself, secrets included.
type Config struct {
	// URL of the JSON Schema, for editors. tenon does not read it.
	Schema string `yaml:"$schema"`
	// Version of the file format.
	Version int `yaml:"version" default:"1"`
	// Name of the project.
	Name string `yaml:"name" default:"folder name"`
	// Set of defaults. Values in the file override it. strict allows only the commands npx, node, uvx and docker,
	// requires https, and forbids literal tokens. The others imitate the systems whose files tenon reads:
	// docs/reference/imports.md.
	Profile string `yaml:"profile" enum:"default,strict,researchai,holodeck,trustgraph,aidk,knime" default:"default"`
	// Sources of secrets: name -> env, file, command, keyring or prompt; never a literal value. A server's `env`,
	// `headers` and `args` refer to one as `${secret:NAME}`. tenon reads a secret when something that uses it starts.
	Secrets map[string]SecretSource `yaml:"secrets"`
	// MCP servers.
	Servers map[string]servers.Config `yaml:"servers"`
	// Settings of single tools. The key is the name that the model sees.
	Tools map[string]catalog.Tool `yaml:"tools"`
	// Tables of tools. Their rows become tools of this configuration, in addition to `tools`, and their addresses
	// become servers, as with `tenon run --table`.
	ToolTables []ToolTable `yaml:"tool_tables"`
	// Tool search: models can search for tools instead of seeing all of them.
	ToolSearch catalog.Search `yaml:"tool_search"`
	// Language models. The first one is the default.
	Models map[string]model.Config `yaml:"models"`
	// File of prices that override the built-in ones, in the format of `tenon models prices`.
	Prices string `yaml:"prices" default:"the built-in table"`
	// Agents. `default` is used if no agent is named.
	Agents map[string]agent.Config `yaml:"agents"`
	// Questions and calls that `tenon serve` starts at certain times.
	Schedules map[string]schedule.Config `yaml:"schedules"`
	// Limits of a run, for all agents.
	Limits agent.Limits `yaml:"limits"`
	// Shared budgets of the runs of a session, of a day, and of a principal on a day.
	Budgets agent.Budgets `yaml:"budgets"`
	// Rules for tool calls. The most specific block wins, key by key: tools.NAME.policy, then servers.NAME.policy,
	// then policy.defaults.
	Policy policy.Config `yaml:"policy"`
	// How Arrow tables are read and written.
	Tables table.Config `yaml:"tables"`
	// Where `tenon servers search` looks for servers.
	Registry Registry `yaml:"registry"`
	// Which engine executes runs.
	Engine Engine `yaml:"engine"`
	// Where runs are stored.
	Store Store `yaml:"store"`
	// What `tenon serve` offers over HTTP.
	Serve Serve `yaml:"serve"`
	// The MCP server that tenon is for other clients.
	Gateway Gateway `yaml:"gateway"`
	// Logs, counters and traces.
	Telemetry Telemetry `yaml:"telemetry"`
	// Which projects may loosen the user's rules. Not allowed in a project's file.
	Trust Trust `yaml:"trust"`

	// File is the file's name as the user would write it. Path is its absolute path; it is empty for stdin, or if
	// there is only the user's own file. Dir is its folder.
	File string `yaml:"-"`
	Path string `yaml:"-"`
	Dir  string `yaml:"-"`
	// Found says that tenon found the file itself and nobody named it. The command line asks a person before it starts
	// commands of such a file and calls its addresses. Package host does not ask: see its Config.Untrusted.
	Found bool `yaml:"-"`
	// Warnings are sorted by their place in the file.
	Warnings []Error `yaml:"-"`

	protected protect.Config // files to which servers get no access
	raw       []layerTree    // the files of the layers, the least trusted first
	held      *Config        // while building: the running configuration, whose versions of files are used

	floors  []floor         // the more trusted layers, the most trusted first
	keys    *tree.Variables // the user's variables
	written policy.Block    // policy.defaults of the least trusted layer
	tree    *tree.Node      // the merged layers, as written
	read    []string
	vars    *tree.Variables
	nodes   map[string]*tree.Node
	order   map[string][]string
	secrets map[string]SecretSource
	added   map[string]bool // paths of servers and tools that no file contains
	tabled  bool            // the tables of ToolTables have been read, or are not to be read
	// path of a server or tool of a table → the place in the file that names the table
	rows       map[string]*tree.Node
	tables     map[string]string            // server → the table that names it
	taken      []takenTable                 // by index in ToolTables
	flows      map[string]TableWorkflow     // workflows of tables, by tool name
	late       map[string]*tree.Node        // path → a text that contains secrets
	ring       Ring                         // if nil, the system's keyring
	given      *given                       // the options of Load
	envs       map[string]map[string]string // server → the variables of its env_file
	envTakes   map[string][]string          // server → environment variables to which its env_file refers
	files      *ledger                      // nil for a Config that a Go program made
	flowed     map[string]readWorkflowFile  // path → the workflow that was checked
	planned    map[string][]byte            // path → a workflow file that is not written yet
	user       string                       // path of the user's own file, "" if it was not read
	tableReads []string                     // files from which the tables of ToolTables were read
}

// SecretSource is the source of a secret: exactly one of its keys is set, apart from Password, which belongs to
// Prompt.
type SecretSource struct {
	// Name of an environment variable.
	Env string `yaml:"env"`
	// File with the secret as text, or with a JSON object that has login and password. If its mode is wider than
	// 0600, tenon prints a warning.
	File string `yaml:"file"`
	// Program and arguments, run without a shell. The value is the first line of the output.
	Command []string `yaml:"command"`
	// SERVICE/USER in the system's keyring.
	Keyring string `yaml:"keyring"`
	// Question to ask on a terminal, once. The answer is stored in the system's keyring, if there is one.
	Prompt string `yaml:"prompt"`
	// true: the answer to the prompt is not shown while it is typed.
	Password bool `yaml:"password" default:"false"`

	name string       // the name of an entry of secrets, instead of a source
	from *tree.Source // the file that contains it; nil: a Go program
}

// Registry is a registry of MCP servers: the official one, or a company's own.
type Registry struct {
	// URL of the registry. It must have the API of the official registry.
	URL string `yaml:"url"`
	// Token for the registry, sent as Authorization: Bearer.
	Secret tenon.Secret `yaml:"secret"`
}

// Store says where runs are stored.
type Store struct {
	// SQLite file. If tenon found tenon.yaml itself, without -c, the file must be inside the project folder.
	Path string `yaml:"path" default:".tenon/tenon.db"`
	// Key that signs the rows of the store; tenon ignores rows without its signature. At least 32 characters. Only
	// your own file and the administrator's file may set it. TENON_STORE_KEY in the environment overrides it.
	Key tenon.Secret `yaml:"key" default:"store.key in the user's state folder, made at its first use"`
	// Time to keep a session after its last change, such as `30d`. `tenon serve` deletes older sessions every hour;
	// `tenon sessions prune` deletes them by hand. A session with an unfinished run, or one that a newer session
	// continues, is kept.
	Retention time.Duration `yaml:"retention" default:"for ever"`
	// Whether arguments and results of tool calls are stored. Runs are resumed from them, so the only possible value
	// is true. `redact` and `policy` encrypt arguments; `retention` and `tenon sessions delete` remove old sessions.
	Audit *bool `yaml:"audit" default:"true"`
	// Names of arguments, of all tools and at every depth, that are encrypted in the store and masked in logs,
	// records and exports, in addition to the `redact` of policies. To mask results, also for the model, use
	// policies.
	Redact []string `yaml:"redact" default:"[]"`
	// PostgreSQL database that replaces the SQLite file, for several processes of `tenon serve` on several machines.
	// Not together with `path`. A file that tenon found itself, without -c, cannot set it.
	Postgres Postgres `yaml:"postgres"`
}

// Postgres says which PostgreSQL database, version 15 or newer, is the store. Files next to the store, such as the
// socket of `tenon serve`, stay in the folder of the SQLite file. All machines need the same key of the store.
type Postgres struct {
	// Connection: `postgres://user:password@host:5432/db?sslmode=verify-full`, or words (`host=… dbname=…`). A pooler
	// in transaction mode may be in between.
	DSN tenon.Secret `yaml:"dsn"`
	// Connection without a pooler, for notifications from other processes. Without them, a process looks for changes
	// at intervals.
	Direct tenon.Secret `yaml:"direct" default:"dsn"`
	// Schema of the tables. It is created in an empty database, if the role may do that.
	Schema string `yaml:"schema" default:"tenon"`
	// Time after which other processes take over the runs of a silent process, at least 1s.
	Lease time.Duration `yaml:"lease" default:"10s"`
	// Maximum number of connections of one process, besides the one for notifications.
	Connections int `yaml:"connections" default:"8" min:"2" max:"1000"`
}

// Engine selects the engine that executes runs.
type Engine struct {
	// local: the process that begins a run, or another one on its store, works on it. temporal: your Temporal cluster
	// chooses a process of `tenon-temporal worker`; needs `store.postgres`.
	Kind string `yaml:"kind" enum:"local,temporal" default:"local"`
	// Temporal cluster, for kind temporal. A file that tenon found itself, without -c, cannot set it.
	Temporal Temporal `yaml:"temporal"`
}

// Telemetry configures logs, metrics and traces.
type Telemetry struct {
	// Lowest level that is logged.
	LogLevel string `yaml:"log_level" enum:"debug,info,warn,error" default:"warn"`
	// Format of the log on stderr.
	LogFormat string `yaml:"log_format" enum:"text,json" default:"text"`
	// Whether `tenon serve` exposes its metrics at /metrics, in Prometheus' text format.
	Metrics *bool `yaml:"metrics" default:"true"`
	// URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`. It receives traces and metrics as OTLP/JSON
	// over HTTP, and servers receive the trace id of each call. They contain no texts, arguments or results.
	OTLP string `yaml:"otlp" default:"none"`
}

// HasMetrics reports whether metrics are exposed at /metrics.
func (t Telemetry) HasMetrics() bool { return t.Metrics == nil || *t.Metrics }

// WithDefaults returns a copy with defaults for absent values.
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

// AllServerNames returns the names of all servers in file order, disabled ones included.
func (c *Config) AllServerNames() []string { return names(c, "servers", c.Servers) }

// ModelNames returns the names of the models in file order; the first is the default.
func (c *Config) ModelNames() []string { return names(c, "models", c.Models) }

// AgentNames returns the names of the agents in file order.
func (c *Config) AgentNames() []string { return names(c, "agents", c.Agents) }

// ToolNames returns the keys of tools in file order.
func (c *Config) ToolNames() []string { return names(c, "tools", c.Tools) }

// names returns the keys of a map: first in file order, then the keys that a Go program added, sorted. It leaves out
// entries under a qualified name; see [Qualified].
func names[V any](c *Config, kind string, m map[string]V) []string {
	out := make([]string, 0, len(m))
	read := make(map[string]bool, len(m))
	for _, n := range c.order[kind] {
		if _, ok := m[n]; ok && !read[n] {
			read[n] = true
			if _, layer := bareName(n); layer == LayerNone {
				out = append(out, n)
			}
		}
	}
	fromFile := len(out)
	for n := range m {
		if !read[n] {
			out = append(out, n)
		}
	}
	slices.Sort(out[fromFile:])
	return out
}

// Origin returns where a value, such as servers.github.timeout, was set: "FILE:LINE", "profile NAME" for a profile's
// default, or "default" for a built-in one.
func (c *Config) Origin(path string) string {
	if n := c.nodes[path]; n != nil {
		if n.Src.Profile {
			return n.Src.Label
		}
		return fmt.Sprintf("%s:%d", n.Src.Label, n.Line)
	}
	if n := c.rowNode(path); n != nil {
		return fmt.Sprintf("%s:%d", n.Src.Label, n.Line)
	}
	if i := strings.LastIndex(path, ".limits."); i > 0 && strings.HasPrefix(path, "agents.") {
		return c.Origin(path[i+1:]) // an agent's limits override the global ones
	}
	return "default"
}

// FromUser reports whether an entry, such as servers.github, is in the user's own file or in the administrator's. No
// other file changes such an entry: its variables do not take values from a project's .env either.
func (c *Config) FromUser(path string) bool {
	layer := c.Layer(path)
	return layer == LayerUser || layer == LayerAdmin
}

// node returns the place where an entry was set: in a file, or, for an entry of a table, where the file names the
// table.
func (c *Config) node(path string) *tree.Node {
	if n := c.nodes[path]; n != nil {
		return n
	}
	return c.rows[path]
}

// Server returns a server's entry ready to start, with its secrets and with the variables of env_file and env in Env.
// Errors: not_found (lists the known names), invalid (not enabled), and the errors of [Config.Resolve].
func (c *Config) Server(ctx context.Context, name string) (servers.Config, error) {
	s, ok := c.Servers[name]
	if !ok {
		return s, noEntry("server", name, names(c, "servers", c.Servers))
	}
	s = s.WithDefaults()
	if s.Elsewhere {
		return s, &tenon.Error{Code: tenon.CodeInvalid, Message: s.WhereElse(name)}
	}
	if !s.IsEnabled() {
		return s, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled: set servers.%s.enabled to true in %s",
			name, name, c.File)
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
	if s.InferTransport() == servers.TransportStdio {
		if err := c.checkCommand("servers."+name, true); err != nil {
			return s, err
		}
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

// RegistryToken returns the token of the registry, or an empty one if none is configured. It returns the errors of
// [Config.Resolve].
func (c *Config) RegistryToken(ctx context.Context) (tenon.Secret, error) {
	ref, ok := c.secrets["registry.secret"]
	if !ok {
		return c.Registry.Secret, nil
	}
	return c.resolve(ctx, ref, "registry.secret")
}

// Model returns a model's entry with its secret; the name "" means the first model. Without api_key in the file, the
// key is read from the provider's usual variable, but only for the provider's own address; it may be empty. Model
// returns the errors of [Config.Server].
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
		key := c.providerKey(name, p.KeyEnv)
		m.APIKey = tenon.NewSecret(key)
	}
	var err error
	m.Tools, m.ToolSecrets, err = c.toolSecrets(ctx, "models."+name, "tools", m.Tools)
	return m, err
}

// ProviderTools returns the provider's tools of an agent (agents.NAME.provider_tools) with their secrets, or nil if it
// has none. The second result is the secrets in them. Errors: errors of [Config.Server].
func (c *Config) ProviderTools(ctx context.Context, name string) (json.RawMessage, []tenon.Secret, error) {
	return c.toolSecrets(ctx, "agents."+name, "provider_tools", c.Agents[name].ProviderTools)
}

// toolSecrets replaces the references to secrets in the settings of a provider's tools. It returns the secrets in them.
func (c *Config) toolSecrets(ctx context.Context, path, key string, raw json.RawMessage) (json.RawMessage,
	[]tenon.Secret, error) {
	if len(raw) == 0 {
		return raw, nil, nil
	}
	f := c.filler(ctx)
	filled := f.settings(path, map[string]json.RawMessage{key: raw})[key]
	return filled, append(model.ToolSecrets(filled), f.used...), f.err
}

// KeylessModel returns an entry of models as Model does, but without its key. It reads no secret and starts no
// program.
func (c *Config) KeylessModel(name string) model.Config {
	m := c.Models[name]
	m.Name = name
	return m.WithDefaults()
}

// Agent returns an agent's entry with its model, and with its limits applied over the global ones. Instructions.Text,
// Template and ResponseFormat.Schema are read from the files that the entry names. The name "" means the entry
// default, or else the only entry, or else an agent with default values. Errors have code not_found or config.
func (c *Config) Agent(name string) (agent.Config, error) {
	all := c.AgentNames()
	if name == "" {
		name = "default"
		if len(all) == 1 {
			name = all[0]
		}
	}
	a, ok := c.Agents[name]
	if !ok && (name != "default" || len(all) > 0) {
		return a, noEntry("agent", name, all)
	}
	a.Limits = c.agentLimits(name, a.Limits)
	a = a.WithDefaults()
	if first := c.ModelNames(); a.Model == "" && len(first) > 0 {
		a.Model = first[0]
	}
	if f := a.Instructions.File; f != "" {
		b, err := c.files.read(f, tree.MaxBytes)
		if err != nil {
			return a, &tenon.Error{Code: tenon.CodeConfig, Err: err,
				Message: fmt.Sprintf("agents.%s.instructions.file: %s", name, reason(err))}
		}
		a.Instructions.Text = string(b)
	}
	if f := a.ResponseFormat.File; f != "" {
		schema, err := readSchema(c.files, f)
		if err != nil {
			return a, &tenon.Error{Code: tenon.CodeConfig, Err: err,
				Message: fmt.Sprintf("agents.%s.response_format.file: %s", name, err)}
		}
		a.ResponseFormat.Schema = schema
	}
	if a.Prompt == agent.PromptDefault || a.Prompt == agent.PromptTrustGraph || a.Template != "" {
		return a, nil
	}
	text, err := template(c.files, a.Prompt)
	a.Template = text
	if err != nil {
		return a, &tenon.Error{Code: tenon.CodeConfig, Err: err, Message: fmt.Sprintf("agents.%s.prompt: %s", name,
			reason(err))}
	}
	return a, nil
}

// maxTemplate limits the size of a template in bytes, because each run stores its template.
const maxTemplate = 64 << 10

// template reads the file of a prompt template and checks that it compiles.
func template(files *ledger, file string) (string, error) {
	b, err := files.read(file, maxTemplate)
	if err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(b)) == 0 { // an empty template means the default one elsewhere
		return "", tenon.Errorf(tenon.CodeConfig, "%s is empty: a react prompt must contain the question "+
			"({{.question}}) and the tools ({{.tool_list}})", file)
	}
	_, err = react.New(react.Config{Template: string(b)})
	return string(b), err
}

// variable looks up a name in the variables of the least trusted layer.
func (c *Config) variable(name string) (string, bool) {
	if c.vars == nil { // made by a Go program, not by Load
		return os.LookupEnv(name)
	}
	return c.vars.Get(name)
}

// providerKey returns the value of a provider's usual variable. The user's .env file is searched too, because the key
// is sent only to the provider's own address.
func (c *Config) providerKey(model, variable string) string {
	lookups := []func(string) (string, bool){c.variable}
	if n := c.node("models." + model); n != nil && n.Src.Vars != nil {
		lookups[0] = n.Src.Vars.Get
	}
	if c.keys != nil {
		lookups = append(lookups, c.keys.Get)
	}
	for _, get := range lookups {
		if key, ok := get(variable); ok && key != "" {
			return key
		}
	}
	return ""
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
	if err := checkFile(path, limit); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// openFile opens a regular file of at most limit bytes.
func openFile(path string, limit int64) (*os.File, error) {
	if err := checkFile(path, limit); err != nil { // opening a pipe would block
		return nil, err
	}
	return os.Open(path)
}

func checkFile(path string, limit int64) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case st.Size() > limit:
		return tooManyBytes(path, limit)
	}
	return nil
}

func tooManyBytes(path string, limit int64) error {
	return fmt.Errorf("%s has more than %d bytes", path, limit)
}
