package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/telemetry"
)

// Caller is who sends a request.
type Caller struct {
	// Principal owns the runs and sessions that it sees and makes.
	Principal tenon.Principal
	// Owner may change what all use: switch servers, read the configuration, see the
	// statistics of everybody.
	Owner bool
	// Any sees the runs and sessions of everybody, as the command line does.
	Any bool
}

// Local is the person whose store it is, at the socket.
var local = Caller{Principal: tenon.PrincipalLocal, Owner: true, Any: true}

// The APIs that a handler can serve.
const (
	Native     = "native"     // /api/v1
	ResearchAI = "researchai" // /chat and /mcp, at the root and under /api
	OpenAI     = "openai"     // /v1
)

// Config says who may come, and what is served. The zero value serves everything to
// everybody as the local user: it is for a listener that only that user reaches.
type Config struct {
	// Authenticate says who sends a request; an error of code auth_required is
	// answered with 401. See [Tokens]. Nil: everybody is the local user.
	Authenticate func(*http.Request) (Caller, error)
	// Guarded has the headers Host and Origin checked: a request must call us by a name
	// of this machine, by one of Hosts, or by that of an origin, and a page that asks
	// must be of our own origin or one of Origins.
	Guarded bool
	// Hosts are names by which we are called, without port. "*" stands for every IP
	// address.
	Hosts []string
	// Origins are those of other pages that may ask, such as https://tools.example.com.
	Origins []string
	// APIs are those that are served; empty: all.
	APIs []string
	// Pages serves what no route is at, to everybody, where it has something there: the
	// workbench. Nil: nothing.
	Pages Pages
	// Edit plans a change of the project's file and, with write, makes it and has the file
	// loaded again. Nil: the file cannot be changed from here.
	Edit func(ctx context.Context, e config.Edits, write bool) (*config.Plan, error)
	// Doctor looks at everything that a run needs, or at what these servers need. Nil: nobody looks.
	Doctor func(ctx context.Context, only []string) ([]Check, error)
	// Agent is whom the researchai API asks; empty: the default one.
	Agent string
	// Telemetry counts requests and gives its metrics at /metrics; nil: there are none.
	Telemetry *telemetry.Collector
	// BodyTime is how long the body of a request may take to arrive; 0: 30 s.
	BodyTime time.Duration
}

// Pages are public files; see package web.
type Pages interface {
	http.Handler
	Has(path string) bool
}

// api serves one host.
type api struct {
	h        *host.Host
	cfg      Config
	requests *gate // under way, streams left out
	streams  *gate
	listed   atomic.Pointer[listing] // the list of tools, encoded
}

// Handler serves a host to everybody who reaches it, as the local user: the socket of
// tenon serve, or a program that checks itself who comes. It is safe for concurrent
// use.
func Handler(h *host.Host) http.Handler { return New(h, Config{}) }

// New serves a host. The handler is safe for concurrent use.
func New(h *host.Host, cfg Config) http.Handler { return build(h, cfg, routes()) }

func build(h *host.Host, cfg Config, table []route) http.Handler {
	cfg.Hosts, cfg.Origins, cfg.APIs = slices.Clone(cfg.Hosts), slices.Clone(cfg.Origins), slices.Clone(cfg.APIs)
	if len(cfg.APIs) == 0 {
		cfg.APIs = []string{Native, ResearchAI, OpenAI}
	}
	cfg.BodyTime = cmp.Or(cfg.BodyTime, bodyTime)
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
	for pattern, methods := range byPattern {
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			c := &call{api: a, w: w, req: req, route: methods[req.Method]}
			if c.route == nil && a.page(req) {
				c.route = pageRoute
			}
			if c.route == nil {
				c.route = &route{api: methods[slices.Sorted(maps.Keys(methods))[0]].api, none: true, serve: func(c *call) error {
					c.w.Header().Set("Allow", allow)
					return refuse(http.StatusMethodNotAllowed, tenon.CodeInvalid, "%s takes %s, not %s", req.URL.Path, allow, req.Method)
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
		if !isClean(req.URL.EscapedPath()) { // which a mux would redirect, before any check
			a.nothing(w, req)
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// nothing answers where no route is.
func (a *api) nothing(w http.ResponseWriter, req *http.Request) {
	if a.lost(req) {
		(&call{api: a, w: w, req: req, route: lostRoute}).handle()
		return
	}
	(&call{api: a, w: w, req: req, route: &route{api: apiOf(req.URL.Path), none: true, serve: func(*call) error {
		return tenon.Errorf(tenon.CodeNotFound, "there is nothing at %s", req.URL.Path)
	}}}).handle()
}

// isClean reports whether a path is absolute and has no empty part, "." or "..".
func isClean(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (clean == p || clean+"/" == p && clean != "/")
}

// pageRoute serves what [Config.Pages] has, after the checks of every route.
var pageRoute = &route{open: true, serve: func(c *call) error {
	c.cfg.Pages.ServeHTTP(c.w, c.req)
	return nil
}}

func (a *api) page(req *http.Request) bool {
	return a.cfg.Pages != nil && (req.Method == http.MethodGet || req.Method == http.MethodHead) && a.cfg.Pages.Has(req.URL.Path)
}

// apiOf guesses the API of a path that nothing is at, so that the error has its form.
func apiOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/v1/"):
		return OpenAI
	case strings.HasPrefix(path, "/mcp/"), strings.HasPrefix(path, "/api/mcp/"):
		return ResearchAI
	}
	return Native
}

// call is one request on its way through the checks to its route.
type call struct {
	*api
	w      http.ResponseWriter
	req    *http.Request
	route  *route
	caller Caller
	body   []byte // a JSON object in UTF-8, or empty
	// brought is what the caller has of its own at servers.
	brought host.Credentials
}

func (c *call) ctx() context.Context { return c.req.Context() }

// handle passes a request through the checks, all of them before its route.
func (c *call) handle() {
	if t := c.cfg.Telemetry; t != nil {
		began, w := time.Now(), &counting{ResponseWriter: c.w, status: http.StatusOK}
		c.w = w
		defer func() { t.Request(cmp.Or(c.route.pattern, "none"), w.status, time.Since(began).Seconds()) }()
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
	if c.ctx().Err() != nil && tenon.ErrorCode(err) == tenon.CodeCancelled && errors.Is(context.Cause(c.ctx()), ErrStopping) {
		err = ErrStopping // whatever was waited for
	}
	p, known := problem(err)
	if c.ctx().Err() != nil && p.Status != http.StatusRequestTimeout && !errors.Is(context.Cause(c.ctx()), ErrStopping) { // whose reading has ended, and not the client
		return // nobody reads it
	}
	if !known {
		c.h.Logger().Error("a request met a defect", "method", c.req.Method, "path", c.req.URL.Path, "error", err)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="tenon"`)
	case http.StatusTooManyRequests:
		c.w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	switch c.route.api {
	case ResearchAI:
		c.send(p.Status, "application/json", map[string]string{"error": p.Detail})
	case OpenAI:
		c.send(p.Status, "application/json", openAIError(p))
	default:
		c.send(p.Status, "application/problem+json", p)
	}
}

// openAIError is a problem in the form of OpenAI's API.
func openAIError(p Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status == http.StatusForbidden:
		kind = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status >= 500:
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": p.Detail, "type": kind, "param": nil, "code": p.Code}}
}
