package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// How an entry's arguments stand to the schema that was discovered.
const (
	ArgumentsOverlay = "overlay"
	ArgumentsReplace = "replace"
	ArgumentsCheck   = "check"
	ArgumentsIgnore  = "ignore"
)

// What becomes of arguments that do not fit a tool's schema.
const (
	ValidateError = "error"
	ValidateWarn  = "warn"
	ValidateOff   = "off"
)

// Tool is one entry of `tools`: what tenon.yaml says about one tool of a server.
// The entry's key is the name that the model sees.
type Tool struct {
	// What the tool is. mcp: a tool of a server; agent: another agent, who answers and returns; http: a request; prompt: a template that a model answers; workflow: a workflow file.
	Kind string `yaml:"kind" enum:"mcp,workflow,http,prompt,agent" default:"mcp"`
	// workflow: its file, a folder with a `workflow.yaml`, or a packed workflow.
	Path string `yaml:"path"`
	// http: the request of a call.
	Request Request `yaml:"request"`
	// prompt: what the model is asked, a text with CEL over `args` between {{ and }}.
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
	// Shown name.
	Title string `yaml:"title" default:"server's"`
	// Text for the model, in place of the server's.
	Description string `yaml:"description" default:"server's"`
	// What the model is told of the tool's arguments; see arguments_mode.
	Arguments []Argument `yaml:"arguments" default:"[]"`
	// JSON Schema of the arguments, instead of `arguments`; both is an error.
	Schema json.RawMessage `yaml:"schema"`
	// overlay: descriptions and types over the discovered schema; replace: instead of it; check: the discovered schema stays, and a difference withholds the tool; ignore: not used.
	ArgumentsMode string `yaml:"arguments_mode" enum:"overlay,replace,check,ignore" default:"overlay"`
	// Arguments that do not fit the schema: error refuses the call and tells the model what was expected, warn makes it nevertheless, off does not look.
	Validate string `yaml:"validate" enum:"error,warn,off" default:"error"`
	// What the tool does; stands above the server's hints, also for `trusted: false`.
	Annotations Annotations `yaml:"annotations"`
	// Groups that see the tool; [] none.
	Groups []string `yaml:"groups" default:"[default]"`
	// States of the agent in which the tool is visible; "*" is every state.
	States []string `yaml:"states" default:"[\"*\"]"`
	// State in which the agent is after a successful call of the tool.
	NextState string `yaml:"next_state" default:"unchanged"`
	// true: the model is told of the tool only when it has found it with `find_tools`; false: at once, however many tools there are.
	Defer *bool `yaml:"defer" default:"server's"`
	// Options passed on with the tool: provider -> object.
	ProviderOptions map[string]json.RawMessage `yaml:"provider_options" default:"{}"`
	// Rules for this tool; stands above all other blocks.
	Policy policy.Block `yaml:"policy"`

	// Loose says that the entry came with a table: its key is the name that the tool wants,
	// as a server's tools want theirs; see [Naming.OnCollision].
	Loose bool `yaml:"-"`
}

// The servers of tools that no MCP server has, in rules and records. No server of a
// configuration can have such a name.
const (
	AgentServer    = "agents"
	HTTPServer     = "http_tools"
	PromptServer   = "prompt_tools"
	WorkflowServer = "workflows"
	StepServer     = "workflow_steps"  // requests that are steps of workflows
	HandoffServer  = "handoffs"        // agents that take over
	ArtifactServer = "artifacts"       // the reader of large results
	DataServer     = "data_repository" // the query of a conversation's tables
	FinderServer   = "tool_search"     // the tool that finds others
	FunctionServer = "functions"       // functions of a Go program
)

// OwnServers returns all of these names.
func OwnServers() []string {
	return []string{AgentServer, HTTPServer, PromptServer, WorkflowServer, StepServer, HandoffServer, ArtifactServer, DataServer, FinderServer, FunctionServer}
}

// kindServers names the server of each kind of tool that no MCP server has.
var kindServers = map[string]string{tenon.KindAgent: AgentServer, tenon.KindHTTP: HTTPServer, tenon.KindPrompt: PromptServer, tenon.KindWorkflow: WorkflowServer}

// Request is what a tool of kind http sends. Between {{ and }} stands CEL over
// `args`; what a value becomes fits where it stands.
type Request struct {
	// GET and HEAD are taken to change nothing, PUT and DELETE to be safe to repeat, unless `annotations` says otherwise.
	Method string `yaml:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE" default:"GET"`
	// Address; scheme, host and port are fixed, values are percent-encoded.
	URL string `yaml:"url"`
	// Headers; {{ secrets.NAME }} is the value of an entry of `secrets`.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// Body. In JSON a value within quotes is escaped, elsewhere it is a JSON value; in a form it is percent-encoded; in any other text it stands as it is.
	Body string `yaml:"body"`
	// true: the address and what it redirects to may be private, of this machine or link-local. An address that the URL itself names as such is allowed in any case.
	AllowPrivate bool `yaml:"allow_private" default:"false"`
}

// IsHeader reports whether a text is a name of a header (RFC 9110, a token) that
// may be set: those that frame the message may not.
func IsHeader(s string) bool {
	if s == "" || slices.Contains([]string{"content-length", "transfer-encoding", "connection", "trailer", "upgrade"}, strings.ToLower(s)) {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return true
}

// builtin describes a tool that its entry alone makes.
func (t *Tool) builtin() tenon.Tool {
	out := tenon.Tool{Remote: t.RemoteName}
	if hints, ok := builtins[t.Kind]; ok {
		out.Kind, out.Input, out.Annotations = t.Kind, noArguments, hints(t)
	}
	return out
}

// builtins are the kinds of tools that an entry alone makes, with what is known of what
// they do.
var builtins = map[string]func(*Tool) tenon.Annotations{
	tenon.KindHTTP: func(t *Tool) tenon.Annotations { return t.Request.Annotations() },
	tenon.KindPrompt: func(*Tool) tenon.Annotations {
		yes, no := true, false
		return tenon.Annotations{ReadOnly: &yes, OpenWorld: &no}
	},
}

// Annotations say what a request does, as far as its method tells.
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

// noArguments is the schema of a tool that takes none.
var noArguments = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// Argument is one argument of a tool as a configuration tells of it.
type Argument struct {
	// Name of the argument.
	Name string `yaml:"name"`
	// JSON Schema type.
	Type string `yaml:"type" enum:"string,number,integer,boolean,object,array,null" default:"string"`
	// Text for the model.
	Description string `yaml:"description"`
	// true: a call must have it.
	Required *bool `yaml:"required" default:"false"`
	// Value that the tool takes where the argument is absent; told to the model.
	Default json.RawMessage `yaml:"default"`
	// The values that are possible.
	Enum []json.RawMessage `yaml:"enum" default:"[]"`
}

// WithDefaults returns the entry with its remote name filled in.
func (t Tool) WithDefaults(name string) Tool {
	if server, ok := kindServers[t.Kind]; ok {
		t.Server, t.RemoteName = server, cmp.Or(t.Agent, t.RemoteName, name)
	}
	if t.RemoteName == "" {
		t.RemoteName = name
	}
	return t
}

// IsEnabled reports whether the tool is offered.
func (t Tool) IsEnabled() bool { return t.Enabled == nil || *t.Enabled }

// Search is the block `tool_search`: from when on a model looks for tools instead
// of being told of all of them.
type Search struct {
	// Estimated tokens of all tools of an agent from which on the model is not told of them but gets the tool `find_tools`, with which it finds those that it needs. Tools with `defer: false` it is told of in any case. More tools than the model's provider takes in one request have the same effect. 0: only tools with `defer: true` have to be found.
	Threshold *int `yaml:"threshold" default:"20000" min:"0"`
	// Globs on exposed names of tools that the model is told of in any case.
	Always []string `yaml:"always" default:"[]"`
	// Tools that one search finds, at most.
	Results int `yaml:"results" default:"8" min:"1" max:"20"`
}

// WithDefaults returns the block with the values that are absent filled in.
func (s Search) WithDefaults() Search {
	if s.Threshold == nil {
		n := 20_000
		s.Threshold = &n
	}
	s.Results = cmp.Or(s.Results, 8)
	return s
}

// Naming says under which names a server's tools are exposed.
type Naming struct {
	// Exposed name; placeholders {server}, {tool}.
	Template string `yaml:"template" default:"{tool}"`
	// What stands in place of a character that is not allowed.
	Replace *string `yaml:"replace" default:"-"`
	// Allowed characters, of A-Z a-z 0-9 _ -; a name that begins with neither a letter nor `_` gets `_` in front.
	Allow string `yaml:"allow" default:"A-Za-z0-9_-"`
	// Longer names are cut and get a hash.
	MaxLen int `yaml:"max_len" default:"64" min:"16" max:"64"`
	// Two tools of one name. server_prefix: all of them become {server}_{tool}; suffix: _1, _2; error: they are left out.
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
	// Text in front of the name.
	Prefix string `yaml:"prefix"`
	// Text in place of the description; placeholders {description}, {title}, {tool}, {server}.
	Describe string `yaml:"describe"`
	// Old name -> new name.
	Rename map[string]string `yaml:"rename" default:"{}"`
	// Parameters that the model does not see and no call has.
	HideParams []string `yaml:"hide_params" default:"[]"`
	// Parameters that the model does not see and every call has: name -> value.
	SetParams map[string]json.RawMessage `yaml:"set_params" default:"{}"`
	// Func is a step of a Go program: it returns the tool as it should be, nil
	// to leave it out. It must not change what it is given. Server and Remote
	// cannot be changed.
	Func func(tenon.Tool) *tenon.Tool `yaml:"-"`
}

// Schema says which schemas of a server reach the model.
type Schema struct {
	// simple: only string, integer and number parameters; a tool that loses a required one is left out.
	Types string `yaml:"types" enum:"full,simple" default:"full"`
}

// TypesSimple is the value of [Schema.Types] that leaves only plain parameters.
const TypesSimple = "simple"

// Annotations says what a tool does. It converts to [tenon.Annotations].
type Annotations struct {
	// Changes nothing.
	ReadOnly *bool `yaml:"read_only" default:"server's"`
	// May destroy something.
	Destructive *bool `yaml:"destructive" default:"server's"`
	// A repeat is safe; decides about retry after a crash.
	Idempotent *bool `yaml:"idempotent" default:"server's"`
	// Reaches things outside of the server's own.
	OpenWorld *bool `yaml:"open_world" default:"server's"`
}

// Over returns the annotations with base, a server's hints, in the place of
// what a does not say.
func (a Annotations) Over(base tenon.Annotations) tenon.Annotations {
	if a.ReadOnly != nil {
		base.ReadOnly = a.ReadOnly
	}
	if a.Destructive != nil {
		base.Destructive = a.Destructive
	}
	if a.Idempotent != nil {
		base.Idempotent = a.Idempotent
	}
	if a.OpenWorld != nil {
		base.OpenWorld = a.OpenWorld
	}
	return base
}
