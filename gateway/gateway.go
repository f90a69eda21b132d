package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

const (
	// pageSize is the number of definitions of one page of a list.
	pageSize = 500
	// maxDoors bounds the principals and endpoints with a server in memory. The longest unused one is dropped; its
	// legacy clients begin a new session.
	maxDoors = 1024
	// sessionIdle is the time after which an unused legacy session ends, because clients vanish without a word.
	sessionIdle = time.Hour
)

// Config configures a gateway. The zero value is usable.
type Config struct {
	// Name and Version are what clients see of the server. Empty: "tenon" and the host's version.
	Name, Version string
	// Park is how long a call that waits for a person holds its client. 0 means as configured (gateway.park).
	Park time.Duration
}

// Gateway serves a host to MCP clients. It outlives the host: [Gateway.Use] replaces it after a reload of the
// configuration, and clients stay connected. It is safe for concurrent use.
type Gateway struct {
	cfg    Config
	closed context.Context // ends with Close; the cause is tenon.ErrClosing
	close  context.CancelCauseFunc
	// draining ends with Drain, for the same cause.
	draining context.Context
	drain    context.CancelCauseFunc
	calls    sync.WaitGroup
	parked   parked
	asking   asking
	lists    lists

	mu      sync.Mutex
	host    *host.Host
	doors   map[doorKey]*door
	changed map[string]bool // lists that changed since clients were notified
	telling bool            // somebody notifies them
}

// doorKey names a door.
type doorKey struct {
	who      tenon.Principal
	endpoint string // an entry of gateway.endpoints; empty: all tools
}

// door is the MCP server of one principal at one endpoint.
type door struct {
	g      *Gateway
	key    doorKey
	server *mcp.Server
	http   http.Handler
	used   time.Time // under the gateway's lock

	recovered sync.Once // the calls that wait since before this process are known

	mu    sync.Mutex
	seen  map[string]string // digests of the lists that clients last got, by list
	parts map[string]string
}

// New returns a gateway to a host. Close it before the host.
func New(h *host.Host, cfg Config) *Gateway {
	cfg.Name = cmp.Or(cfg.Name, "tenon")
	cfg.Version = cmp.Or(cfg.Version, h.Service().Info().Version)
	g := &Gateway{cfg: cfg, host: h, doors: map[doorKey]*door{}}
	g.closed, g.close = context.WithCancelCause(context.Background())
	g.draining, g.drain = context.WithCancelCause(g.closed)
	return g
}

// Drain begins no further calls, and answers parked calls at once. It waits until calls under way are answered, or ctx
// ends.
func (g *Gateway) Drain(ctx context.Context) {
	g.mu.Lock()
	g.drain(tenon.ErrClosing)
	g.mu.Unlock()
	answered := make(chan struct{})
	go func() { // Close ends what it waits for
		defer close(answered)
		g.calls.Wait()
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// Close answers the calls under way, whose runs another process can finish, and waits until they are answered.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.close(tenon.ErrClosing)
	g.mu.Unlock()
	g.calls.Wait()
	return nil
}

// Use replaces the host, for example after a reload of the configuration. Clients learn that the lists may have
// changed.
func (g *Gateway) Use(h *host.Host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.host = h
	g.lists.clear()
	for _, d := range g.doors {
		for _, list := range []string{"tools", "prompts", "resources"} {
			d.server.ListChanged(list)
		}
	}
}

// enter counts a call, unless the gateway is closing.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining.Err() != nil {
		return false
	}
	g.calls.Add(1)
	return true
}

func (g *Gateway) current() *host.Host {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.host
}

// brought is the key of a client's credentials in a context.
type brought struct{}

// ServeMCP answers a request of Streamable HTTP, whose body is already read. The caller has checked where it comes
// from, and whose it is. The path value "endpoint" of the request names an entry of gateway.endpoints, if it is set.
// Credentials are the client's own at servers.
func (g *Gateway) ServeMCP(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal,
	credentials host.Credentials) {
	d, err := g.door(who, r.PathValue("endpoint"))
	if err != nil {
		status := http.StatusInternalServerError
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), brought{}, credentials))
	if r.Method == http.MethodPost {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	d.http.ServeHTTP(w, r)
}

// Serve serves one client over a stream, such as stdin and stdout, until the stream or ctx ends. Endpoint is an entry
// of gateway.endpoints, "" for all tools. Errors: not_found.
func (g *Gateway) Serve(ctx context.Context, stream jsonrpc.Stream, who tenon.Principal, endpoint string) error {
	d, err := g.door(who, endpoint)
	if err != nil {
		return err
	}
	if err := d.server.Serve(ctx, stream); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return err
	}
	return nil // the client has ended the stream, as it should
}

// door returns the server of a principal at an endpoint. Errors: not_found.
func (g *Gateway) door(who tenon.Principal, endpoint string) (*door, error) {
	key := doorKey{cmp.Or(who, tenon.PrincipalLocal), endpoint}
	about, err := endpointOf(g.current(), endpoint)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.doors[key]; d != nil {
		d.used = time.Now()
		return d, nil
	}
	for len(g.doors) >= maxDoors {
		var oldest *door
		for _, d := range g.doors {
			if oldest == nil || d.used.Before(oldest.used) {
				oldest = d
			}
		}
		delete(g.doors, oldest.key)
	}
	d := &door{g: g, key: key, used: time.Now()}
	d.server, err = mcp.NewServer(mcp.ServerConfig{Name: g.cfg.Name, Version: g.cfg.Version, Source: searching{d},
		Private: true, Offers: d.offers, Completions: true, Watch: d.watch, Observe: d.observe,
		Instructions: about.Description, PageSize: pageSize, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	d.http = d.server.HTTP(mcp.HTTPConfig{Admitted: true, Strict: true, MaxBody: maxBody, SessionIdle: sessionIdle})
	g.doors[key] = d
	return d, nil
}

// maxBody bounds a request in bytes; the surface before the gateway has the same bound.
const maxBody = 16 << 20

// Principals returns the principals that have used the gateway, sorted.
func (g *Gateway) Principals() []tenon.Principal {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []tenon.Principal
	for k := range g.doors {
		list = append(list, k.who)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// endpointOf returns an entry of gateway.endpoints; "" is the one with all tools. Errors: not_found.
func endpointOf(h *host.Host, name string) (config.Endpoint, error) {
	e, ok := h.Service().Info().Config.Gateway.Endpoints[name]
	if !ok && name != "" {
		return e, tenon.Errorf(tenon.CodeNotFound, "there is no endpoint '%s' in gateway.endpoints",
			tenon.Visible(name))
	}
	return e, nil
}

// errClosing is the answer to a call whose gateway closes while it waits.
var errClosing = &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
	Message: "tenon is stopping; the journal has how the call ended: tenon runs list"}

// untilGone returns a context with the values of a request's. It ends when the client is gone, but not yet when the
// process begins to stop: [Gateway.Close] ends the call then. The caller calls the function at the end.
func untilGone(request context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(request))
	stop := context.AfterFunc(request, func() {
		if !isClosing(request) {
			cancel(context.Cause(request))
		}
	})
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}

// isClosing reports whether a context ended because the process ends.
func isClosing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), tenon.ErrClosing) }
