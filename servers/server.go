package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/transport"
)

// Options contains everything that a server needs besides its configuration.
type Options struct {
	LookupEnv func(string) (string, bool) // reads inherit_env; if nil, variables are not inherited
	Version   string                      // tenon's version, sent to the server
	// Resolve returns the configuration with its secrets, which are read only when the server is started. If nil, the
	// configuration is used as it is.
	Resolve func(ctx context.Context) (Config, error)
	// Check is called before each start of a process, also when one connect starts several. An error prevents the
	// start. If nil, nothing is checked.
	Check  func() error
	Logger *slog.Logger // if nil, nothing is logged
	// Key returns how the configuration names a key of this server, for errors. If nil, errors name servers.NAME.KEY.
	Key func(key string) string
	// TimeoutKey is the key of the configuration that errors name as the way to raise the timeout of requests. If
	// empty, it is the result of Key for request_timeout.
	TimeoutKey string
	// Admit checks each address (IP:port) of a server with a URL before tenon connects to it. If nil, every address
	// is allowed.
	Admit func(address string) error
	// Cache is the folder where lists of tools are kept between processes, Logs the folder of the servers' logs. If
	// empty, nothing is kept.
	Cache, Logs string
	// Identity is the digest of everything that identifies the server. A list that was kept under another identity is
	// not used. If empty, only the settings of the connection count.
	Identity string
	// Seal returns a MAC of a list in Cache under a key of the user, so that a list that somebody else has written
	// there is not used. If it is nil or returns nil, MACs are neither kept nor checked.
	Seal func(parts ...[]byte) []byte
	// Vault keeps the tokens of sign-ins. If nil, they are kept in memory only, and nobody can log in.
	Vault *oauth.Vault
	// Sign lets a person sign in when a request needs it. If nil, such a request ends with code auth_required.
	Sign oauth.Signer
	// Learned is called with each token when it comes into use. It may be nil.
	Learned func(tenon.Secret)
	// Mask removes secrets from the server's log, from its lists and from its texts about itself. If nil, nothing is
	// masked.
	Mask func(string) string
	// Reaper ends the processes of servers, and their children, if our process dies without closing them. If nil, they
	// stay.
	Reaper *transport.Reaper
	// Pool contains the connections of servers with `share`. If nil, each server has its own connection.
	Pool *Pool
	// Frames enables [Server.Frames]: the last messages of the protocol are kept.
	Frames bool
	// RefreshTools lists the tools of the server instead of using the cached list.
	RefreshTools bool
	// Patience is how long [Server.Tools] waits for the tools of a server that was never listed, counted from the
	// first request. If 0, it waits until the server has connected or has failed to.
	Patience time.Duration
	// Changed is called in a goroutine of the connection after a server reported that its tools have changed. It must
	// not block. It may be nil.
	Changed func(server string)
	// Notify is called with the server's notifications, from goroutines of the connection and while locks are held:
	// it must not block or use the server. It may be nil.
	Notify func(Notification)
	// Slow is called in its own goroutine when a server takes more than a few seconds to connect, and again when it has
	// written a line to stderr. It may be nil.
	Slow func(Starting)
}

// Server is one configured MCP server. It connects at its first use, and again
// at the first use after the connection was lost. It is safe for concurrent
// use.
type Server struct {
	name string
	cfg  Config
	opts Options
	log  *slog.Logger
	// access returns a digest that identifies the remote server and the account that is used there.
	access  func() string
	listing chan struct{} // held by the caller that requests the list of tools
	slot    chan struct{} // held by the one call of a server that takes one at a time; nil if it takes any number

	mu     sync.Mutex
	status Status
	conn   *link // nil while there is none
	dialed chan struct{}
	dialer error // why there is no connection: how the last connect ended, or how it was lost; nil while there is one
	tools  []tenon.Tool
	listed bool
	until  time.Time // when the tools are requested again; zero: when the server reports a change
	// changes counts the changes of the tools that the server has reported. If the count changes while a list is
	// requested, the list is not kept.
	changes   int
	prompts   kept[mcp.Prompt]
	resources kept[mcp.Resource]
	closed    bool
	off       bool           // switched off by a person
	first     *firstList     // the list that Tools waits for, no longer than Patience; nil while there is none
	missed    bool           // a caller requested the tools and did not get them in time
	kept      []tenon.Tool   // the last listing, of this process or an earlier one
	loaded    bool           // kept comes from an earlier process
	named     []tenon.Tool   // the last listing of an earlier process, whose scripts or secrets may have been different
	unwritten *catalogue     // catalogue that must still be written to the cache, or nil
	writing   bool           // a goroutine writes, and then looks at unwritten
	lost      bool           // it was connected before
	invalid   error          // why the entry of a Go program cannot be used; never changes
	over      error          // with restart: never, why there is no connection any more
	retrying  bool           // the background tries to connect again
	singles   sync.WaitGroup // running uses with per_call
	journal   *journal
	flood     *flood
	frames    *frames
	single    bool                      // for one use or one caller of another server, whose journal it uses
	ofCaller  bool                      // serves one caller, so overlays are ignored
	roots     *atomic.Pointer[[]string] // set by SetRoots, and shared with connections of callers
	veil      *tenon.Redactor           // masks the credentials of the caller; nil without a caller
	overlaid  overlaid
	exchanged exchanged // tokens for callers
	// accountName is the principal whose sign-in is used, for the server of one caller.
	accountName string
	// protocol is the detected revision, so that it is detected only once.
	protocol string
	found    string                    // the transport that auto detected, or "" if none yet
	process  *transport.Stdio          // the process that is being started, for its last output
	slow     atomic.Pointer[slowStart] // watches the attempt that is under way; nil between attempts
	stepped  time.Time                 // when the step of connecting that is under way began
	ctx      context.Context           // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // goroutines that connect, watch connections and close old ones
	// connector is dial, except in tests.
	connector func(context.Context) (*dialed, error)
}

// connection is the part of an MCP client that a server uses.
type connection interface {
	tenon.Toolset
	offering
	Done() <-chan struct{} // closed when the connection is lost
	// AfterEnd runs f in a new goroutine after Done is closed, unless stop was called before.
	AfterEnd(f func()) (stop func() bool)
	Err() error // the reason of the loss; nil while connected; set before Done is closed
	Close() error
	// Settle reports at once the changes of lists that the server has announced.
	Settle()
}

// New returns the server of one entry of the configuration. It starts nothing. The server's tools are unfiltered:
// package host applies include, exclude, where, naming, transform, schema and provider_options. If there is no
// [Options.Resolve], New checks the entry's connection and answers; if it finds a mistake, every use returns that
// error, with code config.
func New(name string, cfg Config, opts Options) *Server {
	s := &Server{name: name, cfg: cfg.WithDefaults(), opts: opts, log: opts.Logger,
		roots: &atomic.Pointer[[]string]{}}
	s.access, s.listing = sync.OnceValue(func() string { return s.cfg.key() }), make(chan struct{}, 1)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("server", name)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.connector = s.dial
	if opts.Resolve == nil { // otherwise the caller has checked the entry
		s.invalid = cfg.check(name)
	}
	s.journal, s.frames = newJournal(opts.Logs, name), &frames{}
	s.flood = &flood{report: s.dropped}
	if !s.cfg.IsParallel() {
		s.slot = make(chan struct{}, 1)
	}
	s.status = Status{Name: name, Title: s.cfg.Title, RegistryName: s.cfg.RegistryName, Transport: s.cfg.Transport,
		Target: s.target(), State: StateCold, Tools: -1, NotOffered: s.cfg.NotOffered(),
		Deprecated: s.cfg.Transport == TransportSSE}
	return s
}

func (s *Server) isDisabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off
}

// Tools returns the server's tools. If the configuration allows it, they come from the last listing, and nothing is
// started. Otherwise they come from [Server.List]. If [Options.Patience] is set and the server is not required, Tools
// waits no longer than that: it then returns the last listing or, without one, an error of code timeout.
// [Options.Changed] is called when the tools have arrived.
func (s *Server) Tools(ctx context.Context) ([]tenon.Tool, error) {
	if !s.cfg.LoadsTools() || s.isDisabled() {
		return nil, nil
	}
	if tools, ok := s.Listed(); ok {
		return tools, nil
	}
	if tools, ok := s.Remembered(); ok {
		return tools, nil
	}
	err := s.Late()
	switch {
	case !s.isImpatient():
	case err != nil:
		return s.without(err)
	default:
		return s.soon(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.List(ctx)
}

// Late returns the error of the last attempt to connect if the server did not answer in time, and nil otherwise and
// once it is connected. Waiting for such a server would delay every caller, and the background already tries to
// connect.
func (s *Server) Late() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retrying && s.conn == nil && tenon.ErrorCode(s.dialer) == tenon.CodeTimeout {
		return s.dialer
	}
	return nil
}

// Listed returns the tools that a connected server has listed, unless they have to be requested again. It waits for
// nothing.
func (s *Server) Listed() ([]tenon.Tool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil || !s.listed || s.off || s.closed || isStale(s.until) || s.conn.Err() != nil {
		return nil, false
	}
	return s.tools, true
}

// IsOutdated reports whether a connected server has announced that its list of tools changed, and was not asked for it
// since.
func (s *Server) IsOutdated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.LoadsTools() && s.conn != nil && s.changes > 0 && !s.listed && !s.off && !s.closed
}

// List returns the server's tools, connecting if necessary. They are requested once for each connection, and again
// after the server reported a change.
func (s *Server) List(ctx context.Context) (tools []tenon.Tool, err error) {
	if !s.cfg.LoadsTools() {
		return nil, nil
	}
	if tools, ok := s.Listed(); ok {
		return tools, nil
	}
	err = s.use(ctx, fmt.Sprintf("the list of tools of server '%s'", s.name), func(c *link) error {
		tools, err = s.list(ctx, c)
		return err
	})
	return tools, err
}

// Connect connects if necessary, even if the server's tools are not used.
func (s *Server) Connect(ctx context.Context) error {
	return s.use(ctx, fmt.Sprintf("the connection to server '%s'", s.name), func(*link) error { return nil })
}

// Now returns the current tools, connecting if necessary, like [Server.List]. For a server that is started for each
// call, it returns the last listing; without tool discovery, it returns none.
func (s *Server) Now(ctx context.Context) ([]tenon.Tool, error) {
	if s.cfg.Lifecycle == LifecyclePerCall {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.kept, nil
	}
	return s.List(ctx)
}

func (s *Server) list(ctx context.Context, c *link) ([]tenon.Tool, error) {
	select { // only one of several concurrent callers asks the server
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, gaveUp(ctx, fmt.Sprintf("the list of tools of server '%s'", s.name), "it was asked for already")
	}
	s.mu.Lock()
	tools, listed, changes := s.tools, s.listed && !isStale(s.until), s.changes
	s.mu.Unlock()
	if listed {
		return tools, nil
	}
	start := time.Now()
	tools, err := s.definitions(ctx, c)
	tools = s.maskTools(tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	single := s.cfg.Lifecycle == LifecyclePerCall
	if s.conn == c {
		// Copy, because statuses returned earlier share the old slice.
		s.status.Phases = append(slices.DeleteFunc(slices.Clone(s.status.Phases),
			func(p Phase) bool { return p.Name == phaseList }),
			Phase{phaseList, time.Since(start).Milliseconds()})
	}
	if err != nil {
		s.lostBy(c, err)
		if s.listed && s.conn == c { // the list has only expired
			s.until = time.Now().Add(staleFor)
			s.log.Debug("the tools are used as they were listed before", "error", err)
			return s.tools, nil
		}
		return nil, s.explain("", err)
	}
	if s.conn == c && s.changes == changes || single {
		s.tools, s.listed, s.until = tools, !single, expiry(c, "tools/list")
		s.status.Tools, s.status.Cached = len(tools), time.Time{}
		if s.missed && s.kept == nil { // a list without these tools was given to clients
			s.tellChanges("tools", nil, membersOf(tools, toolMember))
		}
		if changed := s.keep(tools); (changed || s.missed) && s.opts.Changed != nil {
			s.wg.Go(func() { s.opts.Changed(s.name) })
		}
		s.missed = false
	}
	return tools, nil
}

// lostBy checks after an error whether the connection is lost: it has ended, or err says that the server was not
// reached. The caller holds the lock.
func (s *Server) lostBy(c *link, err error) {
	if why := c.Err(); why != nil {
		s.forget(c, why) // the watcher has not noticed it yet, and may do so only after Close
	}
	if tenon.ErrorCode(err) == tenon.CodeUnreachable && !s.closed {
		s.suspect(c, err)
	}
}

// Call runs a tool by its remote name. See [tenon.Toolset].
func (s *Server) Call(ctx context.Context, c tenon.Call) (r *tenon.Result, err error) {
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return nil, err
		}
		defer done()
		r, err := own.callVeiled(ctx, c)
		if tenon.ErrorCode(err) == tenon.CodeAuth {
			s.exchanged.refused(own.cfg.Auth.Secret)
		}
		return r, err
	}
	if s.slot != nil {
		select {
		case s.slot <- struct{}{}:
			defer func() { <-s.slot }()
		case <-ctx.Done():
			return nil, gaveUp(ctx, fmt.Sprintf("the call of tool '%s' of server '%s'", c.Tool, s.name),
				"it waited for the call before it")
		}
	}
	err = s.use(ctx, fmt.Sprintf("tool '%s' of server '%s'", c.Tool, s.name), func(conn *link) error {
		if s.cfg.isOffer(c.Tool) {
			r, err = s.offer(ctx, conn, c)
		} else {
			r, err = conn.Call(ctx, c)
		}
		if err == nil {
			r = s.shape(ctx, conn, r)
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lostBy(conn, err)
		return s.explain(c.Tool, err)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// connect returns the connection and makes one if necessary. The caller must release it after use. All callers share
// one attempt, which has its own deadline and continues when a caller gives up. what describes the caller's purpose.
func (s *Server) connect(ctx context.Context, what string) (*link, error) {
	for {
		s.mu.Lock()
		c, dialed, err := s.current()
		s.mu.Unlock()
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-dialed:
		case <-ctx.Done():
			return nil, gaveUp(ctx, what, "the server was starting")
		}
		s.mu.Lock()
		c, err = s.conn, s.dialer
		if c != nil {
			c.users.Add(1)
		}
		s.mu.Unlock()
		if c != nil || err != nil {
			return c, err
		}
		// The connection was made, and a person ended it before this goroutine ran: try again.
	}
}

// current returns the connection, or else the running attempt to connect, or else the reason why there is neither.
// The caller holds the lock.
func (s *Server) current() (c *link, dialed <-chan struct{}, err error) {
	if s.conn != nil {
		if err := s.conn.Err(); err != nil {
			s.forget(s.conn, err) // the watcher has not noticed it yet
		}
	}
	switch {
	case s.closed:
		return nil, nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	case s.off:
		return nil, nil, s.isOff()
	case s.invalid != nil:
		return nil, nil, s.invalid
	case s.over != nil:
		return nil, nil, fmt.Errorf("%w; %s is never", s.over, s.key("restart"))
	case s.conn != nil:
		s.conn.users.Add(1)
		return s.conn, nil, nil
	}
	return nil, s.begin(), nil
}

// phaseList is the phase that is no step of package mcp's connect.
const phaseList = "list"

// teardown is how long callers wait for the cleanup of a connect that missed its deadline, before they get the error.
// The rest of the cleanup continues in the background.
const teardown = 300 * time.Millisecond

// dialOnce makes one attempt to connect and records how it went.
func (s *Server) dialOnce() {
	start := time.Now()
	d, err := s.dialInTime()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { close(s.dialed); s.dialed, s.process = nil, nil }()
	s.status.Starts++
	switch {
	case s.closed || s.off:
		s.dialer = s.isOff()
		if s.closed {
			s.dialer = tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
		}
		if d != nil {
			s.wg.Go(func() { _ = d.conn.Close() }) // the server was closed meanwhile, so no caller needs the connection
		}
		return
	case err != nil:
		s.dialFailed(err, start)
		return
	}
	s.connected(d)
}

// dialFailed records that a dial failed, and plans the next one. s.mu is held.
func (s *Server) dialFailed(err error, start time.Time) {
	var at *mcp.ConnectError
	if errors.As(err, &at) {
		s.status.Phases = phases(at.Steps)
	} else if len(s.status.Phases) == 0 { // it failed before connecting, for example because a secret is missing
		s.status.Phases = []Phase{{mcp.StepStart, time.Since(start).Milliseconds()}}
	} else {
		s.endStep()
	}
	s.dialer = s.connectError(s.status.Phases[len(s.status.Phases)-1].Name, err)
	state := StateFailed
	if s.lost {
		state = StateBackoff
	}
	if tenon.ErrorCode(err) == tenon.CodeAuth {
		state = StateAuth
	}
	s.set(state, s.dialer)
	if state != StateAuth && tenon.ErrorCode(err) != tenon.CodeDenied {
		s.retryLater()
	}
	s.note("error", s.dialer.Error())
	s.notify(Notification{Err: s.dialer})
	s.log.Debug("cannot connect to MCP server", "error", s.dialer) // callers get the error
}

// connected takes a new connection into use. s.mu is held.
func (s *Server) connected(d *dialed) {
	s.conn, s.dialer = &link{connection: d.conn}, nil
	if s.lost {
		s.status.Restarts++
	}
	s.lost = true // from now on, a new connection counts as a restart
	s.note("state", "connected, protocol "+d.protocol)
	s.tools, s.listed = nil, false
	s.status.Protocol, s.status.Server, s.status.Capabilities, s.status.Phases = d.protocol, d.identity,
		d.capabilities, d.phases
	s.set(StateReady, nil)
	s.log.Info("Connected to MCP server: "+s.name, "protocol", d.protocol)
	conn := s.conn
	s.wg.Add(1)
	conn.AfterEnd(func() { defer s.wg.Done(); s.bury(conn) })
	if s.cfg.LoadResources && s.cfg.Lifecycle != LifecyclePerCall {
		s.wg.Go(func() {
			if _, err := s.Resources(s.ctx); err != nil {
				// Callers of the resources get the error too.
				s.log.Warn("the resources are not known", "error", err.Error())
			}
		})
	}
	if s.kept != nil && s.loaded || s.missed { // the tools that were offered before may have changed
		s.wg.Go(func() { _, _ = s.List(s.ctx) }) // calls of a removed tool fail with an error
	}
}

// refresh marks the tools as outdated after the server reported a change.
func (s *Server) refresh() {
	s.mu.Lock()
	s.listed = false
	s.changes++
	s.mu.Unlock()
	if s.opts.Changed != nil {
		s.opts.Changed(s.name)
	}
}

// Settle reports the changes of lists that the server has announced, before it returns. Without Settle they are
// reported after a short delay, because changes that follow each other closely are reported once.
func (s *Server) Settle() {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.Settle()
	}
}

// set sets the state of the server, with its error. The caller holds the lock.
func (s *Server) set(state State, err error) {
	s.status.State, s.status.Since, s.status.Error, s.status.Progress = state, time.Now(), nil, ""
	var e *tenon.Error
	if errors.As(err, &e) {
		s.status.Error = e
	}
}

// Close ends the connection, and the server's process with all processes that it started. Running calls end, and new
// ones are refused.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	c := s.conn
	s.conn = nil
	if !s.closed {
		s.closed = true
		s.set(StateClosed, nil)
	}
	s.mu.Unlock()
	var err error
	if c != nil {
		err = c.Close()
	}
	s.dropOverlays(true)
	s.singles.Wait()
	s.wg.Wait()
	if !s.single {
		s.flood.close() // writes to the journal
		s.journal.close()
	}
	return err
}

var _ tenon.Toolset = (*Server)(nil)
