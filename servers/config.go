package servers

import (
	"cmp"
	"encoding/json"
	"path"
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
	TransportAuto      = "auto"      // http, else sse, else jsonrpc: what answers
)

// How long a server lives.
const (
	LifecycleLazy    = "lazy"
	LifecycleEager   = "eager"
	LifecyclePerCall = "per_call"
)

// Where the list of its tools comes from before it is used.
const (
	DiscoverCached = "cached"
	DiscoverLive   = "live"
)

// What follows when a connection is lost.
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
	// AuthCredential takes what the secret holds: a second factor as Bearer, login
	// and password as Basic, a password alone as Bearer.
	AuthCredential = "credential"
)

// How an OAuth token is had without a person; see [Auth].
const (
	GrantClientCredentials = oauth.GrantClientCredentials
	GrantJWTBearer         = oauth.GrantJWTBearer
)

// Config is one entry of `servers` in tenon.yaml: how to reach one MCP server
// and what is taken from it. The comments on the fields are the user's
// documentation; the tags default, enum, later and alias go into the JSON Schema
// and are held to [Config.WithDefaults] by a test of package config.
type Config struct {
	// Shown name; the key of the entry where absent.
	Title string `yaml:"title"`
	// Shown text.
	Description string `yaml:"description"`
	// false: never started, and its variables are not resolved.
	Enabled *bool `yaml:"enabled" default:"true"`
	// true: a failed connect fails the run (exit code 4).
	Required bool `yaml:"required" default:"false"`
	// false: its annotations do not count for approval and retry.
	Trusted *bool `yaml:"trusted" default:"true"`
	// How to talk to the server. Inferred where absent: stdio with `command`, websocket with a ws:// or wss:// URL, http with another. auto tries http, then sse, then jsonrpc, and remembers what answered; sse is deprecated by the protocol.
	Transport string `yaml:"transport" alias:"type" enum:"stdio,http,sse,websocket,jsonrpc,auto" default:"inferred"`
	// Protocol revision; auto finds the era and remembers it.
	Protocol string `yaml:"protocol" enum:"auto,2024-11-05,2025-03-26,2025-06-18,2025-11-25,2026-07-28" default:"auto"`

	// stdio: the program, looked up in PATH; no shell.
	Command string `yaml:"command"`
	// stdio: arguments, passed exactly as written.
	Args []string `yaml:"args" default:"[]"`
	// stdio: working directory of the process; a relative path is relative to the config file.
	Cwd string `yaml:"cwd" default:"folder of the config file"`
	// stdio: environment of the process.
	Env map[string]string `yaml:"env" default:"{}"`
	// stdio: file of KEY=VALUE lines, below `env`.
	EnvFile string `yaml:"env_file" alias:"envFile"`
	// stdio: variables that pass from our environment to the process.
	InheritEnv []string `yaml:"inherit_env" default:"[PATH, HOME, USER, LANG, TMPDIR]"`

	// stdio: character encoding of the process's stdin and stdout, a label of the WHATWG Encoding Standard such as latin-1, utf-16le or shift_jis.
	Encoding string `yaml:"encoding" default:"utf-8"`

	// All but stdio: address of the MCP endpoint.
	URL string `yaml:"url"`
	// All but stdio: headers sent with every request; over websocket with the upgrade.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// All but stdio: how to sign in.
	Auth Auth `yaml:"auth"`
	// What a request over HTTP may bring of the caller's own, in the header Tenon-Server-Credentials. Nothing, where this is absent.
	CallerCredentials CallerCredentials `yaml:"caller_credentials"`
	// What principals of `serve.auth.tokens` have of their own at the server: name -> auth, headers, env. Their calls use connections of their own.
	Principals map[string]Own `yaml:"principals" default:"{}"`
	// http and sse: silence allowed on an event stream.
	SSEReadTimeout time.Duration `yaml:"sse_read_timeout" default:"300s"`
	// http: end the session with DELETE (protocol revisions up to 2025-11-25).
	TerminateOnClose *bool `yaml:"terminate_on_close" default:"true"`

	// Settings for the server, an object: the variable MCP_CONFIG as JSON with stdio, and over all transports the experimental capability `tenon/config`, or `_meta` of each request from 2026-07-28 on.
	Settings map[string]json.RawMessage `yaml:"config" default:"{}"`
	// The least important log messages that the server is asked to send, and that are kept of it.
	LogLevel string `yaml:"log_level" enum:"debug,info,notice,warning,error,critical,alert,emergency" default:"info"`
	// keep: a link to a resource in a result stays a link; fetch: the resource is read and stands in its place.
	ResourceLinks string `yaml:"resource_links" enum:"keep,fetch" default:"keep"`
	// native: results as they came; text: their text blocks joined by newlines; structured: structured content as JSON, else the text blocks joined without a separator. Other kinds of content stay behind the text.
	ResultFormat string `yaml:"result_format" enum:"native,text,structured" default:"native"`

	// true: what its tools give counts as retrieved context in evaluations (`expect.context`).
	IsRetrieval bool `yaml:"is_retrieval" default:"false"`
	// Its name in the registry of `registry`: servers search says that it is configured.
	RegistryName string `yaml:"registry_name"`

	// Time to connect and initialize; 2m for a command that may have to fetch the server first: npx, bunx, uvx, pipx, docker and the like.
	Timeout time.Duration `yaml:"timeout" default:"10s"`
	// Time for one request.
	RequestTimeout time.Duration `yaml:"request_timeout" default:"60s"`
	// lazy: connected at the first use; eager: when tools are first needed, and at the start of tenon serve; per_call: a connection for each call.
	Lifecycle string `yaml:"lifecycle" enum:"lazy,eager,per_call" default:"lazy"`
	// true: entries with equal settings that say so use one connection, and one process. Not with per_call.
	Share bool `yaml:"share" default:"false"`
	// cached: the tools that were listed the last time are offered without starting the server, and are listed again once it is used; live: always listed before the first turn.
	Discover string `yaml:"discover" enum:"cached,live" default:"cached"`
	// What follows when the process ends or the connection breaks. never: it stays away; on-failure: it is connected again, after a pause that grows to a minute; always: also after a process has ended without an error.
	Restart string `yaml:"restart" enum:"never,on-failure,always" default:"on-failure"`
	// Globs on remote tool names; a tool that matches none is left out.
	Include []string `yaml:"include" default:"[\"*\"]"`
	// Globs on remote tool names to leave out; wins over include.
	Exclude []string `yaml:"exclude" default:"[]"`
	// CEL over `tool`; a tool for which it is not true is left out.
	Where string `yaml:"where"`
	// Under which names its tools are exposed.
	Naming catalog.Naming `yaml:"naming"`
	// Steps that change its tools, in order; each has one of prefix, describe, rename, hide_params and set_params.
	Transform []catalog.Transform `yaml:"transform" default:"[]"`
	// Which parameters of its tools reach the model.
	Schema catalog.Schema `yaml:"schema"`
	// Options passed on with each of its tools: provider -> object.
	ProviderOptions map[string]json.RawMessage `yaml:"provider_options" default:"{}"`
	// true: the model is told of the tools only when it has found them with `find_tools`; false: at once, however many tools there are.
	Defer *bool `yaml:"defer" default:"by tool_search"`
	// false: one call at a time.
	Parallel *bool `yaml:"parallel" default:"true"`
	// Discover tools; false: only those that `tools` names.
	LoadTools *bool `yaml:"load_tools" default:"true"`
	// Discover prompts where the server declares them; false: there are none.
	LoadPrompts *bool `yaml:"load_prompts" default:"true"`
	// true: each prompt is offered to models as a tool `prompt:NAME`, whose call gives its text. Include, exclude, naming, transform and the rules hold for it as for any tool.
	PromptsAsTools bool `yaml:"prompts_as_tools" default:"false"`
	// true: models get the tools `resources:list` and `resources:read`.
	ResourcesAsTools bool `yaml:"resources_as_tools" default:"false"`
	// List resources whenever the server is connected, so that they are known before somebody asks.
	LoadResources bool `yaml:"load_resources" default:"false"`
	// What the server gets that asks a person for input (elicitation): deny does not offer it.
	Elicitation string `yaml:"elicitation" enum:"deny,ask" default:"ask"`
	// What the server gets that asks for an answer of a model (sampling): deny does not offer it; ask: a person is asked each time; allow: the model answers at once.
	Sampling string `yaml:"sampling" enum:"deny,ask,allow" default:"deny"`
	// Model for sampling.
	SamplingModel string `yaml:"sampling_model" default:"the agent's model"`
	// Bounds of sampling.
	SamplingLimits SamplingLimits `yaml:"sampling_limits"`
	// Folders that the server is told of as the client's roots. Servers may take them for what they are allowed to touch: server-filesystem forgets the folders of its command line.
	Roots []string `yaml:"roots" default:"[]"`
	// Rules for the tools of this server; stands above `policy.defaults`.
	Policy policy.Block `yaml:"policy"`

	// Secrets are the values that came from secrets into Env, Headers and Args; see
	// [Config.SecretValues].
	Secrets []tenon.Secret `yaml:"-"`
}

// Auth says how to sign in to a server with a URL.
type Auth struct {
	// none; bearer: Authorization: Bearer; basic: Authorization: Basic; api_key and header: the value in `header`; oauth: OAuth 2.1, see tenon servers login; credential: what the secret holds, a second factor or a password alone as Bearer, login and password as Basic. A server that wants OAuth may be signed in to without any of these.
	Type string `yaml:"type" enum:"none,bearer,basic,api_key,header,oauth,credential" default:"none"`
	// The value: name of an entry of `secrets`, or {env}, {file} or {command} inline. For basic and credential it is login:password, or a JSON file with login and password, and second_factor for credential. Not for oauth.
	Secret tenon.Secret `yaml:"secret"`
	// Header that carries the value of api_key and header.
	Header string `yaml:"header" default:"X-API-Key for api_key"`
	// oauth: how a token is had. authorization_code: a person signs in once with tenon servers login; client_credentials: client_id with client_secret or private_key is enough; jwt_bearer: what another issuer says in `assertion` is enough, as with workload identities.
	Grant string `yaml:"grant" enum:"authorization_code,client_credentials,jwt_bearer" default:"authorization_code"`
	// oauth: id of a client that is registered there, or the https URL of a client id metadata document; tenon registers itself where absent.
	ClientID string `yaml:"client_id"`
	// oauth: secret of that client; like `secret`.
	ClientSecret tenon.Secret `yaml:"client_secret"`
	// oauth: private key of that client in PEM (EC, RSA or Ed25519), in place of client_secret: it signs a token each time (private_key_jwt, RFC 7523).
	PrivateKey tenon.Secret `yaml:"private_key"`
	// oauth: name of that key, told with each signature.
	KeyID string `yaml:"key_id"`
	// oauth: for the grant jwt_bearer, a token of another issuer that stands for the client, such as the one that a platform writes into a file for each workload. It is read again for each token.
	Assertion tenon.Secret `yaml:"assertion"`
	// oauth: scopes to begin with.
	Scopes []string `yaml:"scopes" default:"what the server names"`
	// oauth: the one authorization server to use.
	Issuer string `yaml:"issuer" default:"what the server names"`
	// oauth: port of this machine to which the browser comes back.
	CallbackPort int `yaml:"callback_port" default:"any free port" min:"1" max:"65535"`
}

// SecretValues returns all secrets of an entry that is ready to start, the absent ones
// too, for whoever masks them.
func (c Config) SecretValues() []tenon.Secret {
	return append([]tenon.Secret{c.Auth.Secret, c.Auth.ClientSecret, c.Auth.PrivateKey, c.Auth.Assertion}, c.Secrets...)
}

// WithDefaults returns a copy in which every absent value has its default;
// Cwd stays empty, which is the process's own working directory (package
// config fills in the folder of the file).
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
	if c.Protocol == "" {
		c.Protocol = ProtocolAuto
	}
	if c.Encoding == "" {
		c.Encoding = "utf-8"
	}
	if c.Lifecycle == "" {
		c.Lifecycle = LifecycleLazy
	}
	if c.Discover == "" {
		c.Discover = DiscoverCached
	}
	if c.Restart == "" {
		c.Restart = RestartOnFailure
	}
	if c.InheritEnv == nil {
		c.InheritEnv = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR"}
	}
	if c.Include == nil {
		c.Include = []string{"*"}
	}
	c.Args, c.Exclude, c.Roots = slices.Clone(c.Args), slices.Clone(c.Exclude), slices.Clone(c.Roots)
	if c.LogLevel == "" {
		c.LogLevel = "info"
	}
	if c.ResourceLinks == "" {
		c.ResourceLinks = LinksKeep
	}
	if c.ResultFormat == "" {
		c.ResultFormat = FormatNative
	}
	c.Auth.Scopes = slices.Clone(c.Auth.Scopes)
	if c.Elicitation == "" {
		c.Elicitation = AnswerAsk
	}
	if c.Sampling == "" {
		c.Sampling = AnswerDeny
	}
	c.SamplingLimits = c.SamplingLimits.withDefaults()
	if c.Timeout == 0 {
		if c.Timeout = 10 * time.Second; c.fetches() {
			c.Timeout = 2 * time.Minute
		}
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = time.Minute
	}
	if c.SSEReadTimeout == 0 {
		c.SSEReadTimeout = 5 * time.Minute
	}
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

// fetches reports whether the command may have to fetch the server before it can
// start it, which takes as long as the network does.
func (c Config) fetches() bool {
	word := ""
	for _, a := range c.Args {
		if !strings.HasPrefix(a, "-") {
			word = a
			break
		}
	}
	name := strings.ToLower(path.Base(strings.ReplaceAll(c.Command, `\`, "/")))
	switch strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd") {
	case "npx", "bunx", "pnpx", "uvx":
		return true
	case "npm", "pnpm", "yarn", "bun":
		return slices.Contains([]string{"exec", "x", "dlx"}, word)
	case "uv":
		return word == "run" || word == "tool"
	case "pipx", "docker", "podman", "deno", "go":
		return word == "run"
	}
	return false
}

// InferTransport returns the transport as written, else the one that command or
// url implies, else "".
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

// IsEncoding reports whether a label is one that `encoding` may have.
func IsEncoding(label string) bool { return transport.IsEncoding(label) }

// IsLegacy reports whether a revision of the protocol is one that begins with initialize.
func IsLegacy(protocol string) bool { return mcp.IsLegacy(protocol) }

// IsEnabled reports whether the entry is in use.
func (c Config) IsEnabled() bool { return c.Enabled == nil || *c.Enabled }

// IsTrusted reports whether the server's annotations count.
func (c Config) IsTrusted() bool { return c.Trusted == nil || *c.Trusted }

// IsParallel reports whether calls may overlap.
func (c Config) IsParallel() bool { return c.Parallel == nil || *c.Parallel }

// LoadsTools reports whether tools are discovered.
func (c Config) LoadsTools() bool { return c.LoadTools == nil || *c.LoadTools }

// LoadsPrompts reports whether prompts are discovered.
func (c Config) LoadsPrompts() bool { return c.LoadPrompts == nil || *c.LoadPrompts }
