package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/telemetry"
)

// Caller identifies the sender of a request.
type Caller struct {
	// Principal owns the runs and sessions that the caller creates. The caller sees only runs and sessions of this
	// principal. Requests of a caller without a principal are refused. A caller with [tenon.PrincipalLocal] is refused
	// unless [LocalUser] returned it.
	Principal tenon.Principal
	// Owner allows actions that affect all principals: to switch servers, to read the configuration, and to see the
	// statistics of all principals.
	Owner bool
	// Any lets the caller see the runs and sessions of all principals, as the command line does.
	Any bool

	until  time.Time    // expiry of an access token; zero if there is none
	access tenon.Secret // the access token
	issuer string       // of the access token
	self   bool         // the local user, and not another one with the same name
}

// User returns the caller for a name that an authentication has confirmed. The caller owns its runs and sessions, and
// sees only these. A user with the name "local" is refused with 401, because that is the principal of the program
// itself: of [host.Host.Ask] and the terminal. A program whose users choose their names puts a prefix before them.
func User(name string) Caller { return Caller{Principal: tenon.Principal(name)} }

// LocalUser returns the caller that is the program itself, and the person at the terminal. It owns what
// [host.Host.Ask] asks, decides its approvals, and is an owner of the server.
func LocalUser() Caller { return Caller{Principal: tenon.PrincipalLocal, Owner: true, self: true} }

// local is the caller of every request at the unix socket: the user to whom the store belongs.
var local = Caller{Principal: tenon.PrincipalLocal, Owner: true, Any: true, self: true}

// The APIs that a handler can serve.
const (
	Native     = "native"     // /api/v1
	ResearchAI = "researchai" // /chat and /mcp, at the root and under /api
	OpenAI     = "openai"     // /v1
	MCP        = "mcp"        // the Model Context Protocol at /mcp; only with [Config.Gateway]
)

// Config configures a handler. The zero value serves all APIs and treats every caller as the local user. This is safe
// only if nobody else can reach the listener.
type Config struct {
	// Authenticate returns the sender of a request. An error of code auth_required, or one without a code, is answered
	// with 401. If nil, every caller is the local user. See [Tokens], [User] and [LocalUser].
	Authenticate func(*http.Request) (Caller, error)
	// OAuth checks access tokens at the routes of MCP, as configured in serve.auth.oauth. It is used for requests that
	// Authenticate refuses. If nil, access tokens are refused.
	OAuth *OAuth
	// Guarded turns on the checks of the headers Host and Origin. Host must be localhost, a loopback address, one of
	// Hosts, or the host of one of Origins. Origin, if set, must be our own origin or one of Origins.
	Guarded bool
	// Hosts are the allowed names in the header Host, without port. "*" allows every IP address.
	Hosts []string
	// Origins are the other origins whose pages may send requests, such as https://tools.example.com.
	Origins []string
	// APIs selects the APIs to serve: Native, ResearchAI, OpenAI, MCP. If empty, all are served. MCP needs Gateway.
	APIs []string
	// Gateway serves the host to MCP clients at /mcp. If nil, there is no such route.
	Gateway Gateway
	// Replicas passes requests of MCP sessions to the replicas that have them. If nil, a session that is not in this
	// process is unknown.
	Replicas Replicas
	// Pages serves public files at paths without a route. These are the files of the workbench. If nil, there are no
	// pages.
	Pages Pages
	// Editor changes the project's file. If nil, the file cannot be changed over HTTP.
	Editor Editor
	// Keys stores the API keys of model providers. If nil, keys cannot be stored over HTTP.
	Keys Keys
	// CommandLine means that only the command line of this machine can reach the listener. This is true for the unix
	// socket. Its agreement to a change of the configuration then counts as the owner's agreement.
	CommandLine bool
	// Doctor checks everything that a run needs. If only is not empty, it checks only the servers in only. If nil, the
	// route answers with an error.
	Doctor func(ctx context.Context, only []string) ([]Check, error)
	// Agent is the agent that answers the ResearchAI API. If empty, it is the default agent.
	Agent string
	// Telemetry counts requests, and /metrics writes its metrics. If nil, /metrics is not found.
	Telemetry *telemetry.Collector
	// BodyTime is the time within which the body of a request must arrive. If 0, it is 30 seconds.
	BodyTime time.Duration
	// CancelLeft cancels a run if the client that asked disconnects before the answer, unless another request of
	// this process still waits for it. Otherwise the run continues.
	CancelLeft bool
	// Beat is the interval of keep-alive comments in a silent stream of an answer. If 0, it is 15 seconds.
	Beat time.Duration
}

// Gateway answers MCP clients. Package gateway implements it.
type Gateway interface {
	// ServeMCP answers a request of Streamable HTTP after all checks. body is the body of the request; it is one JSON
	// value or empty. At /mcp/{endpoint}, the path value "endpoint" of the request is set.
	ServeMCP(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal, brought host.Credentials)
	// Clients returns the clients that have used the gateway lately.
	Clients() []host.GatewayClient
	// SignIn returns what a link for a sign-in to a server is for. Errors: not_found (also after its use).
	SignIn(ticket string) (host.SignInLink, error)
	// BeginSignIn uses a link for a caller that has proved to be who. It returns the address of the authorization
	// server, and a secret that the browser must bring back. Errors: not_found, denied (it is for another principal).
	BeginSignIn(ctx context.Context, ticket string, who tenon.Principal) (address, browser string, err error)
	// EndSignIn ends the sign-in from which a browser comes back with a query. browser returns the secret that it
	// brought for a link, or "". The returned link is the zero one if no sign-in ended. Errors: not_found, denied (it
	// is another browser), auth_required (the authorization server refused).
	EndSignIn(ctx context.Context, back url.Values, browser func(host.SignInLink) string) (host.SignInLink, error)
}

// Replicas are the processes of tenon serve on one store. Package internal/forward implements it.
type Replicas interface {
	// Unwrap returns the client's request in a request that a replica has forwarded. Other requests are returned as
	// they are. Errors: denied (the request was not made by a replica, for this process).
	Unwrap(w http.ResponseWriter, r *http.Request) (*http.Request, error)
	// Forward answers a request that has passed all checks, if its session is in another process. Errors: not_found
	// (that process is gone), denied (a forwarded request differs from what the checks found), unreachable, too_large,
	// store.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal) (done bool, err error)
}

// Pages are the files of the workbench, which need no authentication. Package web implements it.
type Pages interface {
	http.Handler
	Has(path string) bool
}

// api is the state of a handler, shared by all requests.
type api struct {
	h        *host.Host
	cfg      Config
	requests *gate                   // limits concurrent requests that are not streams
	streams  *gate                   // limits concurrent streams
	listed   atomic.Pointer[listing] // the cached list of tools
	left     abandoned               // the runs whose clients disconnected
	waiters  waiters                 // the requests that wait for runs
	queues   queues                  // the messages that wait for their sessions
	mux      *http.ServeMux          // the routes
}

// Handler serves a host and treats every caller as the local user. It is for the unix socket of tenon serve, and for
// programs that authenticate callers themselves. It is safe for concurrent use.
func Handler(h *host.Host) http.Handler { return New(h, Config{}) }

// New returns a handler that serves a host. It is safe for concurrent use.
func New(h *host.Host, cfg Config) http.Handler { return build(h, cfg, routes()) }

func build(h *host.Host, cfg Config, table []route) http.Handler {
	cfg.Hosts, cfg.Origins, cfg.APIs = slices.Clone(cfg.Hosts), slices.Clone(cfg.Origins), slices.Clone(cfg.APIs)
	if len(cfg.APIs) == 0 {
		cfg.APIs = []string{Native, ResearchAI, OpenAI, MCP}
	}
	if cfg.Gateway == nil {
		cfg.APIs = slices.DeleteFunc(cfg.APIs, func(api string) bool { return api == MCP })
	}
	cfg.BodyTime = cmp.Or(cfg.BodyTime, bodyTime)
	if o := h.Service().Info().Config.Serve.Auth.OAuth; cfg.OAuth != nil && o.IsOn() {
		cfg.Hosts = append(cfg.Hosts, publicHost(&o))
		cfg.OAuth.Keys.Keep(o.Accepted())
	}
	a := &api{h: h, cfg: cfg, requests: newGate(maxRequests), streams: newGate(maxStreams)}
	byPattern := map[string]map[string]*route{}
	for _, r := range table {
		if r.api != "" && !slices.Contains(cfg.APIs, r.api) {
			continue
		}
		if byPattern[r.pattern] == nil {
			byPattern[r.pattern] = map[string]*route{}
		}
		byPattern[r.pattern][r.method] = &r
		if r.method == http.MethodGet {
			byPattern[r.pattern][http.MethodHead] = &r
		}
	}
	mux := http.NewServeMux()
	a.mux = mux
	for pattern, methods := range byPattern {
		sorted := slices.Sorted(maps.Keys(methods))
		allow, preflight := strings.Join(sorted, ", "), preflightRoute(methods[sorted[0]].api, sorted)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			c := &call{api: a, w: w, req: req, route: methods[req.Method]}
			if c.route == nil && a.page(req) {
				c.route = pageRoute
			}
			if c.route == nil && a.isPreflight(req) {
				c.route = preflight
			}
			if c.route == nil {
				c.route = &route{api: methods[sorted[0]].api, traits: noBody, serve: func(c *call) error {
					c.w.Header().Set("Allow", allow)
					return refuse(http.StatusMethodNotAllowed, tenon.CodeInvalid, "%s takes %s, not %s", req.URL.Path,
						allow, req.Method)
				}}
			}
			c.handle()
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if a.page(req) {
			(&call{api: a, w: w, req: req, route: pageRoute}).handle()
			return
		}
		a.nothing(w, req)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !isClean(req.URL.EscapedPath()) { // a ServeMux would redirect it before our checks
			a.nothing(w, req)
			return
		}
		if cfg.Replicas != nil {
			opened, err := cfg.Replicas.Unwrap(w, req)
			if err != nil {
				a.refuseForwarded(w, req, err)
				return
			}
			req = opened
		}
		mux.ServeHTTP(w, a.withoutPrefix(req))
	})
}

// nothing answers a request for a path without a route with 404.
func (a *api) nothing(w http.ResponseWriter, req *http.Request) {
	if a.lost(req) {
		(&call{api: a, w: w, req: req, route: lostRoute}).handle()
		return
	}
	(&call{api: a, w: w, req: req, route: &route{api: apiOf(req.URL.Path), traits: noBody, serve: func(*call) error {
		hint := ""
		if p := strings.TrimSuffix(req.URL.Path, "/"); p != req.URL.Path && a.hasRoute(req, p) {
			hint = "; did you mean " + p + "?"
		}
		return tenon.Errorf(tenon.CodeNotFound, "there is nothing at %s%s", req.URL.Path, hint)
	}}}).handle()
}

// hasRoute reports whether a path has a route.
func (a *api) hasRoute(req *http.Request, path string) bool {
	other := req.Clone(req.Context())
	other.URL.Path, other.URL.RawPath = path, ""
	_, pattern := a.mux.Handler(other)
	return pattern != "" && pattern != "/"
}

// refuseForwarded answers a request that claims to be forwarded by a replica, and is not.
func (a *api) refuseForwarded(w http.ResponseWriter, req *http.Request, err error) {
	refuse := &route{api: apiOf(req.URL.Path), traits: public | noBody, serve: func(*call) error { return err }}
	(&call{api: a, w: w, req: req, route: refuse}).handle()
}

// isClean reports whether a path is absolute and has no empty part, "." or "..".
func isClean(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (clean == p || clean+"/" == p && clean != "/")
}

// pageRoute serves a file of [Config.Pages] after the usual checks.
var pageRoute = &route{traits: public, serve: func(c *call) error {
	c.cfg.Pages.ServeHTTP(c.w, c.req)
	return nil
}}

func (a *api) page(req *http.Request) bool {
	return a.cfg.Pages != nil && (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		a.cfg.Pages.Has(req.URL.Path)
}

// apiOf guesses the API of a path without a route, so that the error has the form of that API.
func apiOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/v1/"):
		return OpenAI
	case path == "/mcp":
		return MCP
	case strings.HasPrefix(path, "/mcp/"), strings.HasPrefix(path, "/api/mcp/"):
		return ResearchAI
	}
	return Native
}

// call is one request, with the results of the checks before its route.
type call struct {
	*api
	w      http.ResponseWriter
	req    *http.Request
	route  *route
	caller Caller
	body   []byte // one JSON value in UTF-8, or empty
	// brought are the caller's own credentials for servers, and carried is the header that contains them.
	brought host.Credentials
	carried []string
	// guest means that the request joined a run of another request. The run is then not cancelled when this request
	// ends.
	guest bool
	// steered means that the message of the request went into a run that was at work before.
	steered bool
}

func (c *call) ctx() context.Context { return c.req.Context() }

// handle makes all checks, calls the route's handler and answers with its error, if any.
func (c *call) handle() {
	if t := c.cfg.Telemetry; t != nil {
		began, w := time.Now(), &counting{ResponseWriter: c.w, status: http.StatusOK}
		c.w = w
		defer func() { t.Request(cmp.Or(c.route.pattern, "none"), w.status, time.Since(began).Seconds()) }()
	}
	if c.cfg.Guarded && len(c.cfg.Origins) > 0 {
		c.w.Header().Add("Vary", "Origin")
	}
	leave, err := c.check()
	if leave != nil {
		defer leave()
	}
	if err == nil {
		err = c.route.serve(c)
	}
	if err != nil {
		c.fail(err)
	}
}

// fail answers with an error, in the form of the route's API.
func (c *call) fail(err error) {
	if c.ctx().Err() != nil && tenon.ErrorCode(err) == tenon.CodeCancelled && errors.Is(context.Cause(c.ctx()),
		ErrStopping) && !errors.As(err, new(final)) {
		err = ErrStopping // the cause of the cancellation
	}
	p, known := c.problem(err)
	// If the context is cancelled, the client has disconnected, except after a timeout of the body and during a
	// shutdown.
	if c.ctx().Err() != nil && p.Status != http.StatusRequestTimeout && !errors.Is(context.Cause(c.ctx()),
		ErrStopping) {
		return // nobody reads the answer
	}
	if !known {
		c.h.Service().Info().Logger.Error("internal error in a request",
			"method", c.req.Method, "path", c.req.URL.Path, "error", err)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", c.challenge(err))
	case http.StatusForbidden:
		if errors.As(err, new(scopeError)) {
			c.w.Header().Set("WWW-Authenticate", c.challenge(err))
		}
	case http.StatusTooManyRequests:
		c.w.Header().Set("Retry-After", "1")
	case http.StatusServiceUnavailable:
		if errors.Is(err, host.ErrBusy) {
			c.w.Header().Set("Retry-After", busyPause)
		}
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	c.failFinal(p)
	switch c.route.api {
	case ResearchAI:
		c.send(p.Status, "application/json", chatError(p))
	case OpenAI:
		c.send(p.Status, "application/json", openAIError(p))
	case MCP:
		c.send(p.Status, "application/json", mcpError(p))
	default:
		c.send(p.Status, "application/problem+json", p)
	}
}

// openAIError converts a problem to an error of OpenAI's API.
func openAIError(p Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status == http.StatusForbidden:
		kind = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status >= 500, p.Status == http.StatusFailedDependency:
		kind = "server_error"
	}
	e := map[string]any{"message": p.Detail, "type": kind, "param": nil, "code": p.Code}
	if p.Run != "" {
		e["run"] = p.Run
	}
	return map[string]any{"error": e}
}

// chatError converts a problem to an error of ResearchAI's API.
func chatError(p Problem) any {
	e := map[string]any{"error": p.Detail}
	if run := cmp.Or(p.Run, p.chat.run); run != "" {
		e["run"] = run
	}
	if p.chat.session != "" {
		e["sessionId"] = p.chat.session
	}
	if p.Approvals != nil {
		e["approvals"] = p.Approvals
	}
	return e
}
