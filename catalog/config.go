package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// Values of [Tool.ArgumentsMode].
const (
	ArgumentsOverlay = "overlay"
	ArgumentsReplace = "replace"
	ArgumentsCheck   = "check"
	ArgumentsIgnore  = "ignore"
)

// Values of [Tool.Validate].
const (
	ValidateError = "error"
	ValidateWarn  = "warn"
	ValidateOff   = "off"
)

// Tool is one entry of `tools`: what tenon.yaml says about one tool of a server.
// The entry's key is the name that the model sees.
type Tool struct {
	// Kind of the tool. mcp: a tool of a server; agent: another agent, which answers and returns; http: a request;
	// prompt: a template that a model answers; workflow: a workflow file.
	Kind string `yaml:"kind" enum:"mcp,workflow,http,prompt,agent" default:"mcp"`
	// workflow: the workflow file, a folder with a `workflow.yaml`, or a packed workflow.
	Path string `yaml:"path"`
	// http: the request that a call sends.
	Request Request `yaml:"request"`
	// prompt: text of the request to the model, with CEL over `args` between {{ and }}.
	Template string `yaml:"template"`
	// prompt: entry of `models` that answers.
	Model string `yaml:"model" default:"agent's"`
	// Entry of `agents` that a tool of kind agent calls.
	Agent string `yaml:"agent" default:"NAME"`
	// false: the tool is left out.
	Enabled *bool `yaml:"enabled" default:"true"`
	// Server that has the tool.
	Server string `yaml:"server"`
	// The tool's name on the server.
	RemoteName string `yaml:"remote_name" default:"NAME"`
	// Title to show.
	Title string `yaml:"title" default:"server's"`
	// Description for the model. It replaces the server's.
	Description string `yaml:"description" default:"server's"`
	// Arguments of the tool, as the model sees them; see arguments_mode.
	Arguments []Argument `yaml:"arguments" default:"[]"`
	// JSON Schema of the arguments. It excludes `arguments`.
	Schema json.RawMessage `yaml:"schema"`
	// overlay: descriptions and types over the discovered schema. Other arguments are then refused, unless the schema
	// says that it allows them, or describes arguments by `oneOf`, `$ref` and the like; replace: instead of the
	// discovered schema, which only says which of the arguments are required; check: the discovered schema stays, and
	// a difference withholds the tool; ignore: not used.
	ArgumentsMode string `yaml:"arguments_mode" enum:"overlay,replace,check,ignore" default:"overlay"`
	// Treatment of arguments that do not fit the schema. error: the call is refused, and the model receives the
	// expected form; warn: the call is made nevertheless; off: the arguments are not checked.
	Validate string `yaml:"validate" enum:"error,warn,off" default:"error"`
	// Effects of the tool. They override the server's hints, also with `trusted: false`.
	Annotations Annotations `yaml:"annotations"`
	// Groups to which the tool belongs; [] none.
	Groups []string `yaml:"groups" default:"[default]"`
	// States of the agent in which the tool is visible; "*" is every state.
	States []string `yaml:"states" default:"[\"*\"]"`
	// State of the agent after a successful call of the tool.
	NextState string `yaml:"next_state" default:"unchanged"`
	// true: the model sees the tool only after it has found it with `find_tools`; false: it sees the tool at once,
	// whatever the number of tools.
	Defer *bool `yaml:"defer" default:"server's"`
	// Options that are passed on with the tool: provider -> object.
	ProviderOptions map[string]json.RawMessage `yaml:"provider_options" default:"{}"`
	// Rules for this tool. They override all other blocks.
	Policy policy.Block `yaml:"policy"`

	// Loose reports that the entry came with a table: its key is the name that the tool wants, and may clash like the
	// name of a server's tool; see [Naming.OnCollision].
	Loose bool `yaml:"-"`
}

// Server names, in rules and records, of tools that belong to no MCP server. No server of a configuration can have
// such a name.
const (
	AgentServer    = "agents"
	HTTPServer     = "http_tools"
	PromptServer   = "prompt_tools"
	WorkflowServer = "workflows"
	StepServer     = "workflow_steps"  // requests that are steps of workflows
	HandoffServer  = "handoffs"        // agents that take over
	ArtifactServer = "artifacts"       // the reader of large results
	DataServer     = "data_repository" // the query of a conversation's tables
	FinderServer   = "tool_search"     // the tool that searches tools
	ClientServer   = "client_tools"    // tools that the client of a run executes
	ProviderServer = "provider"        // tools that the model's provider runs
	FunctionServer = "functions"       // functions of a Go program
)

// OwnServers returns the server names of tools that belong to no MCP server.
func OwnServers() []string {
	return []string{AgentServer, HTTPServer, PromptServer, WorkflowServer, StepServer, HandoffServer, ArtifactServer,
		DataServer, FinderServer, ClientServer, ProviderServer, FunctionServer}
}

// IsReserved reports whether a server name is one of [OwnServers] other than [FunctionServer].
func IsReserved(name string) bool {
	return name != FunctionServer && slices.Contains(OwnServers(), name)
}

// kindServers maps each kind of tool that belongs to no MCP server to its server name.
var kindServers = map[string]string{tenon.KindAgent: AgentServer, tenon.KindHTTP: HTTPServer,
	tenon.KindPrompt: PromptServer, tenon.KindWorkflow: WorkflowServer}

// Request is the HTTP request of a tool of kind http. Text between {{ and }} is CEL over `args`; its value is escaped
// as its place requires.
type Request struct {
	// HTTP method. GET and HEAD are treated as read-only, PUT and DELETE as idempotent, unless `annotations` says
	// otherwise.
	Method string `yaml:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE" default:"GET"`
	// URL with a literal scheme, host and port. Inserted values are percent-encoded.
	URL string `yaml:"url"`
	// Headers; {{ secrets.NAME }} is the value of an entry of `secrets`.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// Body of the request. Inserted values are escaped within JSON strings, become JSON values elsewhere in JSON, and
	// are percent-encoded in a form. In other text they are inserted unchanged.
	Body string `yaml:"body"`
	// true: the request and its redirects may reach private and link-local addresses and this machine. A private
	// address that is written in the URL itself is always allowed.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// IsHeader reports whether a text is the name of a header (RFC 9110, a token) that may be set. Headers that frame the
// message may not be set.
func IsHeader(s string) bool {
	if s == "" || slices.Contains([]string{"content-length", "transfer-encoding", "connection", "trailer", "upgrade"},
		strings.ToLower(s)) {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return true
}

// DescribesArguments reports whether the entry says which arguments the tool has. An empty list that replaces the
// server's schema says that it has none.
func (t *Tool) DescribesArguments() bool {
	return len(t.Arguments) > 0 || len(t.Schema) > 0 || t.Arguments != nil && t.ArgumentsMode == ArgumentsReplace
}

// builtin returns the definition of a tool of which the entry is the only source.
func (t *Tool) builtin() tenon.Tool {
	out := tenon.Tool{Remote: t.RemoteName}
	if hints, ok := builtins[t.Kind]; ok {
		out.Kind, out.Input, out.Annotations = t.Kind, noArguments, hints(t)
	}
	return out
}

// builtins maps each kind of tool of which the entry is the only source to a function for its annotations.
var builtins = map[string]func(*Tool) tenon.Annotations{
	tenon.KindHTTP: func(t *Tool) tenon.Annotations { return t.Request.Annotations() },
	tenon.KindPrompt: func(*Tool) tenon.Annotations {
		yes, no := true, false
		return tenon.Annotations{ReadOnly: &yes, OpenWorld: &no}
	},
}

// Annotations returns the effects of a request, as far as its method determines them.
func (r *Request) Annotations() tenon.Annotations {
	yes := true
	switch r.Method {
	case "", "GET", "HEAD":
		return tenon.Annotations{ReadOnly: &yes}
	case "PUT", "DELETE":
		return tenon.Annotations{Idempotent: &yes}
	}
	return tenon.Annotations{}
}

// noArguments is the schema of a tool without arguments.
var noArguments = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// Argument is one argument of a tool in a configuration.
type Argument struct {
	// Name of the argument.
	Name string `yaml:"name"`
	// JSON Schema type.
	Type string `yaml:"type" enum:"string,number,integer,boolean,object,array,null" default:"string"`
	// Description for the model.
	Description string `yaml:"description"`
	// true: each call must set the argument; false: a call may omit it, even if the server requires it. Without a
	// server's schema the default is false.
	Required *bool `yaml:"required" default:"server's"`
	// Value that the tool uses if the argument is absent. The model sees it.
	Default json.RawMessage `yaml:"default"`
	// Allowed values.
	Enum []json.RawMessage `yaml:"enum" default:"[]"`
}

// IsServerTool reports whether the entry describes a tool of an MCP server.
func (t Tool) IsServerTool() bool { return t.Kind == "" || t.Kind == tenon.KindMCP }

// FixedArguments returns the source of the tool's arguments if the entry cannot change them. Otherwise it returns "".
func (t Tool) FixedArguments() string {
	switch t.Kind {
	case tenon.KindWorkflow:
		return "the arguments of a workflow are the parameters of its file"
	case tenon.KindAgent:
		return "the only argument of an agent is its message"
	}
	return ""
}

// WithDefaults returns the entry with its remote name filled in.
func (t Tool) WithDefaults(name string) Tool {
	if server, ok := kindServers[t.Kind]; ok {
		t.Server, t.RemoteName = server, cmp.Or(t.Agent, t.RemoteName, name)
	}
	t.RemoteName = cmp.Or(t.RemoteName, name)
	return t
}

// IsEnabled reports whether the tool is offered.
func (t Tool) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }

// Search is the block `tool_search`: the conditions under which a model searches tools instead of seeing all of them.
type Search struct {
	// Number of estimated tokens of all tools of an agent. If there are more, the model gets the tool `find_tools`
	// instead of all tools. It always sees tools with `defer: false`. More tools than the provider accepts in one
	// request have the same effect. 0: only tools with `defer: true` must be found.
	Threshold *int `yaml:"threshold" default:"20000" min:"0"`
	// Globs on exposed names of tools that the model always sees.
	Always []string `yaml:"always" default:"[]"`
	// Maximum number of tools that one search returns.
	Results int `yaml:"results" default:"8" min:"1" max:"20"`
	// Model whose embeddings the search uses in addition to words: an entry of `models`, or PROVIDER/NAME. It gets the
	// texts of all tools and the words of each search. If it does not answer in time, words alone decide.
	Embeddings string `yaml:"embeddings"`
	// Time that one search waits for embeddings.
	EmbeddingsTimeout time.Duration `yaml:"embeddings_timeout" default:"5s"`
}

// WithDefaults returns the block with defaults for absent values.
func (s Search) WithDefaults() Search {
	if s.Threshold == nil {
		n := 20_000
		s.Threshold = &n
	}
	s.Results = cmp.Or(s.Results, 8)
	s.EmbeddingsTimeout = cmp.Or(s.EmbeddingsTimeout, 5*time.Second)
	return s
}

// Naming defines the names under which a server's tools are exposed.
type Naming struct {
	// Exposed name; placeholders {server}, {tool}.
	Template string `yaml:"template" default:"{tool}"`
	// Replacement for each character that is not allowed.
	Replace *string `yaml:"replace" default:"-"`
	// Allowed characters, of A-Z a-z 0-9 _ -; a name that begins with neither a letter nor `_` gets `_` in front.
	Allow string `yaml:"allow" default:"A-Za-z0-9_-"`
	// Maximum length. A longer name is cut and gets a hash.
	MaxLen int `yaml:"max_len" default:"64" min:"16" max:"64"`
	// Handling of tools with the same name. server_prefix: each becomes {server}_{tool}; suffix: _1, _2; error: they
	// are left out.
	OnCollision string `yaml:"on_collision" enum:"server_prefix,suffix,error" default:"server_prefix"`
}

// The values of [Naming.OnCollision].
const (
	CollisionServerPrefix = "server_prefix"
	CollisionSuffix       = "suffix"
	CollisionError        = "error"
)

// Transform is one step of a server's `transform`: exactly one of its fields is
// set.
type Transform struct {
	// Text to add before the name.
	Prefix string `yaml:"prefix"`
	// New description; placeholders {description}, {title}, {tool}, {server}.
	Describe string `yaml:"describe"`
	// Old name -> new name.
	Rename map[string]string `yaml:"rename" default:"{}"`
	// Parameters to remove. The model does not see them, and no call has them.
	HideParams []string `yaml:"hide_params" default:"[]"`
	// Parameters with a fixed value in each call: name -> value. The model does not see them.
	SetParams map[string]json.RawMessage `yaml:"set_params" default:"{}"`
	// Func is a step of a Go program. It returns the changed tool, or nil to leave the tool out. It must not modify
	// the data that its argument points to. Server and Remote cannot be changed.
	Func func(tenon.Tool) *tenon.Tool `yaml:"-"`
}

// Schema defines which schemas of a server reach the model.
type Schema struct {
	// simple: the model sees only string, integer and number parameters; a tool with another required parameter is
	// left out.
	Types string `yaml:"types" enum:"full,simple" default:"full"`
	// Meaning of the keyword `format` in the schemas of arguments and results. annotation: values are not checked
	// against it; assertion: they are.
	Formats string `yaml:"formats" enum:"annotation,assertion" default:"annotation"`
}

// TypesSimple is the value of [Schema.Types] with which only string, integer and number parameters stay.
// FormatsAssertion is the value of [Schema.Formats] that checks formats.
const (
	TypesSimple      = "simple"
	FormatsAssertion = "assertion"
)

// Annotations describes the effects of a tool. It converts to [tenon.Annotations].
type Annotations struct {
	// true: the tool changes nothing.
	ReadOnly *bool `yaml:"read_only" default:"server's"`
	// true: the tool may destroy something.
	Destructive *bool `yaml:"destructive" default:"server's"`
	// true: a repeated call is safe, also after a crash.
	Idempotent *bool `yaml:"idempotent" default:"server's"`
	// Interacts with systems outside of the server, such as the web.
	OpenWorld *bool `yaml:"open_world" default:"server's"`
}

// Over returns the annotations of a. For annotations that a does not set, it uses base, the hints of a server.
func (a Annotations) Over(base tenon.Annotations) tenon.Annotations {
	base.ReadOnly = cmp.Or(a.ReadOnly, base.ReadOnly)
	base.Destructive = cmp.Or(a.Destructive, base.Destructive)
	base.Idempotent = cmp.Or(a.Idempotent, base.Idempotent)
	base.OpenWorld = cmp.Or(a.OpenWorld, base.OpenWorld)
	return base
}
