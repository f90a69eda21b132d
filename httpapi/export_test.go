package httpapi

import (
	"net/http"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// HasStatus reports whether a code has an HTTP status in the table.
func HasStatus(code tenon.Code) bool {
	_, ok := statuses[code]
	return ok
}

// Route is a row of the table of routes.
type Route struct {
	Method, Pattern, API string
	Open, Owner, Stream  bool
	Raw                  bool // reads its body itself
	Bodiless             bool // reads no body
}

// Routes is the table.
func Routes() []Route {
	var list []Route
	for _, r := range routes() {
		list = append(list, Route{r.method, r.pattern, r.api, r.is(public), r.is(ownerOnly), r.is(streaming), r.is(rawBody), r.is(noBody)})
	}
	return list
}

// Counted returns a handler for all routes. Each route only calls reached, so that a test can see that the request was
// accepted.
func Counted(h *host.Host, cfg Config, reached func()) http.Handler {
	table := routes()
	for i := range table {
		table[i].serve = func(c *call) error { reached(); return c.answer(http.StatusOK, struct{}{}) }
	}
	return build(h, cfg, table)
}

// Gate limits the number of concurrent requests.
type Gate struct{ g *gate }

// NewGate returns a gate for a number of concurrent requests.
func NewGate(size int) Gate { return Gate{newGate(size)} }

// Enter takes a place.
func (g Gate) Enter(who tenon.Principal) bool { return g.g.enter(who) }

// Leave gives it back.
func (g Gate) Leave(who tenon.Principal) { g.g.leave(who) }

// Full returns a handler at which the local user has reached the limit of concurrent requests.
func Full(h *host.Host, cfg Config) http.Handler {
	table := routes()
	for i := range table {
		if table[i].pattern == "/healthz" {
			table[i].serve = func(c *call) error {
				for c.requests.enter(tenon.PrincipalLocal) {
				}
				c.requests.enter("somebody") // uses the slot that this request frees
				return nil
			}
		}
	}
	handler := build(h, cfg, table)
	req, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1/healthz", nil)
	handler.ServeHTTP(nopWriter{}, req)
	return handler
}

// SlowQueue returns a handler that does not check queues during a test, unless a run ends.
func SlowQueue(h *host.Host, cfg Config) http.Handler {
	table := routes()
	for i := range table {
		if table[i].pattern == "/healthz" {
			table[i].serve = func(c *call) error { c.queues.beat = time.Hour; return nil }
		}
	}
	handler := build(h, cfg, table)
	req, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1/healthz", nil)
	handler.ServeHTTP(nopWriter{}, req)
	return handler
}

type nopWriter struct{}

func (nopWriter) Header() http.Header         { return http.Header{} }
func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }
func (nopWriter) WriteHeader(int)             {}

// Remedy and OnMachine are exported for the test of all errors of the packages below.
var Remedy = remedy

const OnMachine = onMachine
