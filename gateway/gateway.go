package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
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
	// sessionIdle is the time after which an unused legacy session ends, because many clients leave without ending
	// their session.
	sessionIdle = time.Hour
)

// Config configures a gateway. The zero value is usable.
type Config struct {
	// Name and Version are the server's name and version in answers to clients. If empty, they are "tenon" and the
	// host's version.
	Name, Version string
	// Park is how long the gateway holds the client of a call that waits for a person. If 0, the configured
	// gateway.park applies.
	Park time.Duration
	// NewSession returns the id of a new legacy session of a principal at an endpoint. If nil, ids are random.
	NewSession func(who tenon.Principal, endpoint string) string
}

// Gateway serves a host to MCP clients. It outlives the host: [Gateway.Use] replaces it after a reload of the
// configuration, and clients stay connected. It is safe for concurrent use.
type Gateway struct {
	cfg    Config
	closed context.Context // ends with Close; the cause is tenon.ErrClosing
	close  context.CancelCauseFunc
	// draining ends with Drain. The cause is tenon.ErrClosing.
	draining context.Context
	drain    context.CancelCauseFunc
	calls    sync.WaitGroup
	parked   parked
	asking   asking
	lists    lists
	clients  clients
	signIns  signIns

	mu      sync.Mutex
	host    *host.Host
	doors   map[doorKey]*door
	changed map[string]bool // lists that changed since clients were notified
	telling bool            // a goroutine notifies the clients
}

// doorKey names a door.
type doorKey struct {
	who      tenon.Principal
	endpoint string // an entry of gateway.endpoints, or empty for all tools
}

// door is the MCP server of one principal at one endpoint.
type door struct {
	g      *Gateway
	key    doorKey
	server *mcp.Server
	http   http.Handler
	used   time.Time // under the gateway's lock
	users  int       // requests and streams under way; under the gateway's lock

	recovered sync.Once    // for the calls that waited when an earlier process ended
	watching  atomic.Int32 // tasks that clients watch

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

// Drain makes the gateway refuse further calls, and answers parked calls at once. It returns when the calls under way
// are answered, or when ctx ends.
func (g *Gateway) Drain(ctx context.Context) {
	g.mu.Lock()
	g.drain(tenon.ErrClosing)
	g.mu.Unlock()
	answered := make(chan struct{})
	go func() { // Close ends the calls that the goroutine waits for
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

// Use replaces the host, for example after a reload of the configuration. Clients are notified that the lists may have
// changed.
func (g *Gateway) Use(h *host.Host) {
	endpoints := h.Service().Info().Config.Gateway.Endpoints
	g.mu.Lock()
	defer g.mu.Unlock()
	g.host = h
	g.lists.clear()
	for _, d := range g.doors {
		d.server.SetInstructions(endpoints[d.key.endpoint].Description)
		for _, list := range []string{"tools", "prompts", "resources"} {
			d.server.ListChanged(list)
		}
	}
}

// enter counts a call and returns true. If the gateway is closing, it returns false.
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

// brought is the context key of a client's credentials.
type brought struct{}

// ServeMCP answers a request of Streamable HTTP, whose body is already read. The caller has checked the origin and the
// principal of the request. If the path value "endpoint" of the request is set, it names an entry of gateway.endpoints.
// The credentials are the client's own credentials at servers. If who is empty, it is the local user; names of users
// become principals with [tenon.UserPrincipal].
func (g *Gateway) ServeMCP(w http.ResponseWriter, r *http.Request, body []byte, who tenon.Principal,
	credentials host.Credentials) {
	d, err := g.door(who, r.PathValue("endpoint"))
	if err != nil {
		status := http.StatusInternalServerError
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			status = http.StatusNotFound
		}
		mcp.Refuse(w, status, "%s", err)
		return
	}
	defer g.release(d)
	ctx := context.WithValue(r.Context(), brought{}, credentials)
	r = r.WithContext(context.WithValue(ctx, originKey{}, g.origin(r)))
	if r.Method == http.MethodPost {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	d.http.ServeHTTP(w, r)
}

// Serve serves one client over a stream, such as stdin and stdout, until the stream or ctx ends. endpoint is an entry
// of gateway.endpoints, or "" for all tools. The principal is as in [Gateway.ServeMCP]. Errors: not_found.
func (g *Gateway) Serve(ctx context.Context, stream jsonrpc.Stream, who tenon.Principal, endpoint string) error {
	d, err := g.door(who, endpoint)
	if err != nil {
		return err
	}
	defer g.release(d)
	if err := d.server.Serve(ctx, stream); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return err
	}
	return nil // the client has ended the stream, as it should
}

// door returns the server of a principal at an endpoint. The caller must release it after use. Errors: not_found.
func (g *Gateway) door(who tenon.Principal, endpoint string) (*door, error) {
	key := doorKey{cmp.Or(who, tenon.PrincipalLocal), endpoint}
	about, err := endpointOf(g.current(), endpoint)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.doors[key]; d != nil {
		d.users++
		return d, nil
	}
	for len(g.doors) >= maxDoors {
		delete(g.doors, oldest(g.doors).key)
	}
	d := &door{g: g, key: key, users: 1}
	d.server, err = mcp.NewServer(mcp.ServerConfig{Name: g.cfg.Name, Version: g.cfg.Version, Source: searching{d},
		Private: true, Offers: d.offers, Completions: true, Watch: d.watch, Observe: d.observe,
		Joined: d.joined, Seen: d.seenClient, Left: d.left,
		Extensions: []string{mcp.ExtensionTasks}, Extra: d.extra, WatchTask: d.watchTask,
		Instructions: about.Description, PageSize: pageSize, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	conf := mcp.HTTPConfig{Admitted: true, Strict: true, MaxBody: maxBody, SessionIdle: sessionIdle,
		Sessionless: true} // claude.ai does not send its session back; a door has one principal anyway
	if g.cfg.NewSession != nil {
		conf.NewSession = func() string { return g.cfg.NewSession(key.who, key.endpoint) }
	}
	d.http = d.server.HTTP(conf)
	g.doors[key] = d
	return d, nil
}

// release ends a use of a door.
func (g *Gateway) release(d *door) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.users--
	d.used = time.Now()
}

// oldest returns the door that is unused for the longest time. A door with a client, such as one with an open stream,
// is chosen only if all have clients: its clients are not notified of changes any more.
func oldest(doors map[doorKey]*door) (found *door) {
	for _, d := range doors {
		if found == nil || d.users == 0 && found.users > 0 ||
			(d.users == 0) == (found.users == 0) && d.used.Before(found.used) {
			found = d
		}
	}
	return found
}

// maxBody bounds a request in bytes; the surface before the gateway has the same bound.
const maxBody = 16 << 20

// endpointOf returns an entry of gateway.endpoints. The name "" is the endpoint with all tools. Errors: not_found.
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

// untilGone returns a context with the values of a request's context. It ends when the client is gone. It does not end
// when the process begins to stop, because [Gateway.Close] ends the call. The caller must call the returned function
// when the request has ended.
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
