package servers

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/transport"
)

// The transports of a server.
const (
	TransportStdio     = "stdio"
	TransportHTTP      = "http"      // Streamable HTTP
	TransportSSE       = "sse"       // the older HTTP+SSE, deprecated
	TransportWebSocket = "websocket" //
	TransportJSONRPC   = "jsonrpc"   // plain JSON-RPC in POSTs, without initialize
	TransportAuto      = "auto"      // the first of http, sse and jsonrpc that the server answers
	TransportProgram   = "program"   // in a [Status] only: a toolset of a Go program
)

// The lifecycles of a server.
const (
	LifecycleLazy    = "lazy"
	LifecycleEager   = "eager"
	LifecyclePerCall = "per_call"
)

// The sources of a server's list of tools before the server is used.
const (
	DiscoverCached = "cached"
	DiscoverLive   = "live"
)

// The reactions to a lost connection.
const (
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

// ProtocolAuto finds a server's protocol era and remembers it.
const ProtocolAuto = "auto"

// The kinds of [Auth].
const (
	AuthNone   = "none"
	AuthBearer = "bearer"
	AuthBasic  = "basic"
	AuthAPIKey = "api_key"
	AuthHeader = "header"
	AuthOAuth  = "oauth"
	// AuthCredential sends what the secret contains: a second factor as Bearer, login and password as Basic, a
	// password alone as Bearer.
	AuthCredential = "credential"
)

// The OAuth grants; see [Auth].
const (
	GrantClientCredentials = oauth.GrantClientCredentials
	GrantJWTBearer         = oauth.GrantJWTBearer
)

// Config is one entry of `servers` in tenon.yaml: how to reach one MCP server, and which of its tools and
// capabilities to use. The comments on the fields are the user's documentation. The tags default, enum, later and
// alias are written into the JSON Schema; a test of package config compares them with [Config.WithDefaults].
type Config struct {
	// Name to show. Default: the key of the entry.
	Title string `yaml:"title"`
	// Description to show.
	Description string `yaml:"description"`
	// false: tenon never starts the server and does not resolve its variables.
	Enabled *bool `yaml:"enabled" default:"true"`
	// Label that a replica must have in `serve.replica` to use this server, for example because the server exists on
	// one host only. Default: all replicas use it. A replica without the label does not use the server, and leaves
	// runs that need it to others.
	Replica string `yaml:"replica"`
	// true: the run fails if the server cannot be connected (exit code 4).
	Required bool `yaml:"required" default:"false"`
	// false: tenon ignores the server's annotations for approval and retry.
	Trusted *bool `yaml:"trusted" default:"true"`
	// Transport of the server. Default: stdio with `command`, websocket with a ws:// or wss:// URL, else http. auto
	// tries http, sse and jsonrpc in this order and remembers the one that answers. sse is deprecated by the
	// protocol.
	Transport string `yaml:"transport" alias:"type" enum:"stdio,http,sse,websocket,jsonrpc,auto" default:"inferred"`
	// Protocol revision. auto detects the era of the server and remembers it.
	Protocol string `yaml:"protocol" enum:"auto,2024-11-05,2025-03-26,2025-06-18,2025-11-25,2026-07-28" default:"auto"`

	// stdio: program to start, without a shell. It is looked up in PATH.
	Command string `yaml:"command"`
	// stdio: arguments, passed unchanged.
	Args []string `yaml:"args" default:"[]"`
	// stdio: working directory of the process, relative to the config file.
	Cwd string `yaml:"cwd" default:"folder of the config file"`
	// stdio: environment variables of the process.
	Env map[string]string `yaml:"env" default:"{}"`
	// stdio: file of KEY=VALUE lines with further variables. `env` overrides them. Values in double quotes have the
	// escapes \n, \r, \t, \", \\ and \$. References such as `${OTHER}` are replaced, but not in single quotes.
	EnvFile string `yaml:"env_file" alias:"envFile"`
	// stdio: variables that the process inherits from tenon's environment.
	InheritEnv []string `yaml:"inherit_env" default:"[PATH, HOME, USER, LANG, TMPDIR]"`

	// stdio: character encoding of the process's stdin and stdout, a label of the WHATWG Encoding Standard such as
	// latin-1, utf-16le or shift_jis.
	Encoding string `yaml:"encoding" default:"utf-8"`

	// All but stdio: address of the MCP endpoint.
	URL string `yaml:"url"`
	// All but stdio: headers of every request; over websocket, of the upgrade request.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// All but stdio: authentication.
	Auth Auth `yaml:"auth"`
	// Credentials that a request over HTTP may contain in the header Tenon-Server-Credentials. If absent, none are
	// accepted.
	CallerCredentials CallerCredentials `yaml:"caller_credentials"`
	// Credentials and settings of principals of `serve.auth.tokens` at the server: name -> auth, headers, env. Their
	// calls use separate connections.
	Principals map[string]Own `yaml:"principals" default:"{}"`
	// http and sse: maximum silence on an event stream.
	SSEReadTimeout time.Duration `yaml:"sse_read_timeout" default:"300s"`
	// http: end the session with DELETE (protocol revisions up to 2025-11-25).
	TerminateOnClose *bool `yaml:"terminate_on_close" default:"true"`

	// Settings that are sent to the server, an object. Variables and `${secret:NAME}` in its texts are replaced. With
	// stdio, they are JSON in the variable MCP_CONFIG. Over all transports, they are in the experimental capability
	// `tenon/config`, or in `_meta` of each request from 2026-07-28 on.
	Settings map[string]json.RawMessage `yaml:"config" default:"{}"`
	// Lowest level of log messages that the server is asked to send and that tenon keeps.
	LogLevel string `yaml:"log_level" enum:"debug,info,notice,warning,error,critical,alert,emergency" default:"info"`
	// keep: links to resources in a result stay links; fetch: tenon reads the resource and replaces the link.
	ResourceLinks string `yaml:"resource_links" enum:"keep,fetch" default:"keep"`
	// native: results are unchanged; text: their text blocks, joined by newlines; structured: structured content as
	// JSON, else the text blocks, joined without a separator. Other kinds of content follow the text.
	ResultFormat string `yaml:"result_format" enum:"native,text,structured" default:"native"`

	// true: results of its tools count as retrieved context in evaluations (`expect.context`).
	IsRetrieval bool `yaml:"is_retrieval" default:"false"`
	// Name of the server in the registry. `tenon servers search` then shows it as configured.
	RegistryName string `yaml:"registry_name"`

	// Time to connect and initialize; 2m for a command that may have to fetch the server first: npx, bunx, uvx,
	// pipx, docker, go run and the like, also behind env, sudo and in the line of a shell.
	Timeout time.Duration `yaml:"timeout" default:"10s"`
	// Timeout of a request. policy.timeout of a rule replaces it for calls.
	RequestTimeout time.Duration `yaml:"request_timeout" default:"60s"`
	// When to connect. lazy: at the first use; eager: when tools are first needed, and at the start of tenon serve;
	// per_call: separately for each call.
	Lifecycle string `yaml:"lifecycle" enum:"lazy,eager,per_call" default:"lazy"`
	// true: entries with equal settings and `share: true` use one connection and one process. Not with per_call.
	Share bool `yaml:"share" default:"false"`
	// cached: tenon offers the tools of the last listing without starting the server, and lists them again when it
	// uses the server; live: it lists the tools before each run's first turn.
	Discover string `yaml:"discover" enum:"cached,live" default:"cached"`
	// Reaction when the process ends or the connection breaks. never: it stays disconnected; on-failure: it is
	// connected again, after a pause that grows to a minute; always: also after a process has ended without an
	// error.
	Restart string `yaml:"restart" enum:"never,on-failure,always" default:"on-failure"`
	// Globs on remote tool names; a tool that matches none is left out.
	Include []string `yaml:"include" default:"[\"*\"]"`
	// Globs on remote tool names to leave out. Overrides include.
	Exclude []string `yaml:"exclude" default:"[]"`
	// CEL over `tool` and `server`. Tools for which it is not true are left out.
	Where string `yaml:"where"`
	// Names under which the tools are exposed.
	Naming catalog.Naming `yaml:"naming"`
	// Steps that change the tools, in order. Each has one of prefix, describe, rename, hide_params and set_params.
	Transform []catalog.Transform `yaml:"transform" default:"[]"`
	// Parameters of the tools that the model sees.
	Schema catalog.Schema `yaml:"schema"`
	// Options that are passed on with each of the tools: provider (anthropic, openai, gemini or google) -> object. With
	// `openai: {strict: true}`, also as `openai: {function: {strict: true}}`, the schema is closed if possible, which
	// `tenon tools lint` shows: optional parameters may then be null, and are left out of the call.
	ProviderOptions map[string]json.RawMessage `yaml:"provider_options" default:"{}"`
	// true: the model sees the tools only after it has found them with `find_tools`; false: it sees the tools at once,
	// whatever their number.
	Defer *bool `yaml:"defer" default:"by tool_search"`
	// false: tenon makes only one call at a time.
	Parallel *bool `yaml:"parallel" default:"true"`
	// Whether to discover tools. false: only the tools in `tools`.
	LoadTools *bool `yaml:"load_tools" default:"true"`
	// Whether to discover prompts, if the server declares them.
	LoadPrompts *bool `yaml:"load_prompts" default:"true"`
	// true: models see each prompt as a tool `prompt:NAME` that returns its text. Include, exclude, naming, transform
	// and the rules apply to it.
	PromptsAsTools bool `yaml:"prompts_as_tools" default:"false"`
	// true: models get the tools `resources:list` and `resources:read`.
	ResourcesAsTools bool `yaml:"resources_as_tools" default:"false"`
	// Whether to list resources at each connect, and not only on request.
	LoadResources bool `yaml:"load_resources" default:"false"`
	// Handling of questions to a person (elicitation). deny: the capability is not offered; ask: a person answers, or
	// the client of the gateway that made the call; client: only that client, if it declares elicitation.
	Elicitation string `yaml:"elicitation" enum:"deny,client,ask" default:"ask"`
	// Handling of requests to a model (sampling). deny: the capability is not offered; ask: a person decides each
	// time, or the client of the gateway answers that made the call; allow: the model answers at once; client: only
	// that client answers, if it declares sampling.
	Sampling string `yaml:"sampling" enum:"deny,client,ask,allow" default:"deny"`
	// Model that answers sampling requests.
	SamplingModel string `yaml:"sampling_model" default:"the agent's model"`
	// Limits of sampling.
	SamplingLimits SamplingLimits `yaml:"sampling_limits"`
	// Folders that are sent to the server as the client's roots. Servers may treat them as their allowed folders:
	// server-filesystem then ignores the folders of its command line.
	Roots []string `yaml:"roots" default:"[]"`
	// true: during the call of a client of the gateway that declares roots, the server gets the roots of that client.
	ClientRoots bool `yaml:"client_roots" default:"false"`
	// Rules for the tools of this server. They override `policy.defaults`.
	Policy policy.Block `yaml:"policy"`

	// Filters are the filters of more trusted layers of the configuration. The server offers only tools that pass all
	// of them.
	Filters []Filter `yaml:"-" json:"-"`

	// Elsewhere says that this process does not have the label in Replica, so this process does not use the entry.
	Elsewhere bool `yaml:"-" json:"-"`

	// Secrets are the values that came from secrets into Env, Headers and Args; see
	// [Config.SecretValues].
	Secrets []tenon.Secret `yaml:"-"`
}

// Filter is the part of a server that an entry of a more trusted layer allows; see [catalog.Filter].
type Filter struct {
	By      string // the file that contains the filter
	Include []string
	Exclude []string
	Where   string
	// Transform contains the steps set_params and hide_params, which apply before the steps of the entry.
	Transform []catalog.Transform
	// Entries contains descriptions of the tools' arguments, by remote name.
	Entries map[string]catalog.Tool
}

// Auth says how to sign in to a server with a URL.
type Auth struct {
	// none; bearer: Authorization: Bearer; basic: Authorization: Basic; api_key and header: the value in `header`;
	// oauth: OAuth 2.1, see tenon servers login; credential: a second factor or a password as Bearer, login and
	// password as Basic. For a server that requires OAuth, tenon servers login works without this block.
	Type string `yaml:"type" enum:"none,bearer,basic,api_key,header,oauth,credential" default:"none"`
	// Secret to send: name of an entry of `secrets`, or {env}, {file} or {command} inline. For basic and credential
	// it is login:password, or a JSON file with login and password, and second_factor for credential. Not for oauth.
	Secret tenon.Secret `yaml:"secret"`
	// Header for the types api_key and header.
	Header string `yaml:"header" default:"X-API-Key for api_key"`
	// oauth: how to obtain a token. authorization_code: a person signs in once with tenon servers login;
	// client_credentials: with client_id and client_secret or private_key; jwt_bearer: with a token of another issuer
	// in `assertion`, as with workload identities.
	Grant string `yaml:"grant" enum:"authorization_code,client_credentials,jwt_bearer" default:"authorization_code"`
	// oauth: id of a registered client, or the https URL of a client id metadata document. Default: tenon registers
	// itself.
	ClientID string `yaml:"client_id"`
	// oauth: secret of the client; like `secret`.
	ClientSecret tenon.Secret `yaml:"client_secret"`
	// oauth: private key of the client in PEM (EC, RSA or Ed25519), instead of client_secret. It signs each token
	// request (private_key_jwt, RFC 7523).
	PrivateKey tenon.Secret `yaml:"private_key"`
	// oauth: id of the private key, sent with each signature.
	KeyID string `yaml:"key_id"`
	// oauth: for the grant jwt_bearer, a token of another issuer that identifies the client, such as the token that a
	// platform writes into a file for each workload. It is read again for each token request.
	Assertion tenon.Secret `yaml:"assertion"`
	// oauth: scopes of the first request.
	Scopes []string `yaml:"scopes" default:"what the server names"`
	// oauth: the authorization server to use.
	Issuer string `yaml:"issuer" default:"what the server names"`
	// oauth: local port to which the browser is redirected.
	CallbackPort int `yaml:"callback_port" default:"any free port" min:"1" max:"65535"`
}

// SecretValues returns all secrets of an entry whose variables are resolved, so that they can be masked. Absent
// secrets are included as zero values.
func (c Config) SecretValues() []tenon.Secret {
	return append([]tenon.Secret{c.Auth.Secret, c.Auth.ClientSecret, c.Auth.PrivateKey, c.Auth.Assertion}, c.Secrets...)
}

// WithDefaults returns a copy in which every absent value has its default. Cwd may stay empty, which means the
// process's own working directory (package config fills in the folder of the file).
func (c Config) WithDefaults() Config {
	yes := true
	for _, p := range []**bool{&c.Enabled, &c.Trusted, &c.Parallel, &c.LoadTools, &c.LoadPrompts, &c.TerminateOnClose} {
		if *p == nil {
			*p = &yes
		}
	}
	if c.Transport == "" {
		c.Transport = c.InferTransport()
	}
	c.Protocol = cmp.Or(c.Protocol, ProtocolAuto)
	c.Encoding = cmp.Or(c.Encoding, "utf-8")
	c.Lifecycle = cmp.Or(c.Lifecycle, LifecycleLazy)
	c.Discover = cmp.Or(c.Discover, DiscoverCached)
	c.Restart = cmp.Or(c.Restart, RestartOnFailure)
	if c.InheritEnv == nil {
		c.InheritEnv = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR"}
	}
	if c.Include == nil {
		c.Include = []string{"*"}
	}
	c.Args, c.Exclude, c.Roots = slices.Clone(c.Args), slices.Clone(c.Exclude), slices.Clone(c.Roots)
	c.LogLevel = cmp.Or(c.LogLevel, "info")
	c.ResourceLinks = cmp.Or(c.ResourceLinks, LinksKeep)
	c.ResultFormat = cmp.Or(c.ResultFormat, FormatNative)
	c.Auth.Scopes = slices.Clone(c.Auth.Scopes)
	c.Elicitation = cmp.Or(c.Elicitation, AnswerAsk)
	c.Sampling = cmp.Or(c.Sampling, AnswerDeny)
	c.SamplingLimits = c.SamplingLimits.withDefaults()
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
		if program, _ := c.fetches(); program != "" {
			c.Timeout = 2 * time.Minute
		}
	}
	c.RequestTimeout = cmp.Or(c.RequestTimeout, time.Minute)
	c.SSEReadTimeout = cmp.Or(c.SSEReadTimeout, 5*time.Minute)
	c.Auth = c.Auth.withDefaults()
	return c
}

func (a Auth) withDefaults() Auth {
	a.Type = cmp.Or(a.Type, AuthNone)
	a.Grant = cmp.Or(a.Grant, oauth.GrantAuthorizationCode)
	if a.Type == AuthAPIKey {
		a.Header = cmp.Or(a.Header, "X-API-Key")
	}
	return a
}

// InferTransport returns the configured transport, or the transport that command or url implies, or "".
func (c Config) InferTransport() string {
	switch {
	case c.Transport != "":
		return c.Transport
	case c.Command != "":
		return TransportStdio
	case strings.HasPrefix(c.URL, "ws://") || strings.HasPrefix(c.URL, "wss://"):
		return TransportWebSocket
	case c.URL != "":
		return TransportHTTP
	}
	return ""
}

// IsEncoding reports whether a label is a valid value of `encoding`.
func IsEncoding(label string) bool { return transport.IsEncoding(label) }

// IsLegacy reports whether a revision of the protocol is one that begins with initialize.
func IsLegacy(protocol string) bool { return mcp.IsLegacy(protocol) }

// IsEnabled reports whether the entry is in use in this process.
func (c Config) IsEnabled() bool { return (c.Enabled == nil || *c.Enabled) && !c.Elsewhere }

// IsTrusted reports whether the server's annotations count.
func (c Config) IsTrusted() bool { return c.Trusted == nil || *c.Trusted }

// IsParallel reports whether calls may overlap.
func (c Config) IsParallel() bool { return c.Parallel == nil || *c.Parallel }

// LoadsTools reports whether tools are discovered.
func (c Config) LoadsTools() bool { return c.LoadTools == nil || *c.LoadTools }

// LoadsPrompts reports whether prompts are discovered.
func (c Config) LoadsPrompts() bool { return c.LoadPrompts == nil || *c.LoadPrompts }
