package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// The steps of connecting, as a [Step] names them.
const (
	StepStart      = "start"      // the transport is dialed: a process is started, or nothing is sent yet
	StepDiscover   = "discover"   // server/discover
	StepInitialize = "initialize" // initialize, and the notice that follows it
)

// Step is a step of connecting, and how long it took.
type Step struct {
	Name string
	Took time.Duration
}

// ConnectError says where connecting came to its end. It is in the chain of
// every error of [Connect].
type ConnectError struct {
	Step  string // the name of the last of Steps
	Steps []Step // all that were begun, in order
	Err   error  // the cause
}

// Error is the text of the cause.
func (e *ConnectError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// steps is the log of a connect.
type steps struct {
	list []Step
	at   time.Time
	tell func(name string)
}

// begin ends the step before and begins another; "" begins none.
func (s *steps) begin(name string) {
	now := time.Now()
	if n := len(s.list); n > 0 {
		s.list[n-1].Took = now.Sub(s.at)
	}
	if s.at = now; name != "" {
		s.list = append(s.list, Step{Name: name})
		if s.tell != nil {
			s.tell(name)
		}
	}
}

// Connect dials the server and finds out which era it speaks: it asks
// server/discover first, and what is neither an answer of a modern server nor
// one of its errors means initialize. A server that says nothing, or that ends
// at the unknown method, gets a fresh connection for that. Errors have code
// unreachable, auth_required, rate_limited, protocol, timeout or cancelled, and
// wrap a [*ConnectError].
func Connect(ctx context.Context, cfg ClientConfig) (*Client, error) {
	cfg = cfg.withDefaults()
	log := steps{tell: cfg.Step}
	c, err := connect(ctx, cfg, &log)
	log.begin("")
	if err != nil {
		if c != nil {
			_ = c.Close() // the first error says more
		}
		return nil, connectError(ctx, log.list, err)
	}
	info := c.Info()
	info.Steps = log.list
	c.info.Store(&info)
	c.cfg.Dial, c.cfg.Step = nil, nil // with all that they hold
	c.listen()
	return c, nil
}

// connect returns the client that is to be used, or to be closed.
func connect(ctx context.Context, cfg ClientConfig, log *steps) (*Client, error) {
	c, err := dial(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	switch {
	case c.isPlain(): // such servers have no life cycle: the first request is the first
		c.info.Store(&Info{Capabilities: json.RawMessage(`{"tools":{}}`)})
		return c, nil
	case cfg.Protocol == Modern:
		log.begin(StepDiscover)
		return c, c.discover(ctx)
	case cfg.Protocol != "":
		log.begin(StepInitialize)
		return c, c.begin(ctx, cfg.Protocol)
	}
	return find(ctx, cfg, c, log)
}

func dial(ctx context.Context, cfg ClientConfig, log *steps) (*Client, error) {
	log.begin(StepStart)
	s, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return attach(cfg, s), nil
}

// find asks for the era and opens it. It returns the client that is to be used,
// or to be closed.
func find(ctx context.Context, cfg ClientConfig, c *Client, log *steps) (*Client, error) {
	log.begin(StepDiscover)
	probe, cancel := ctx, context.CancelFunc(func() {})
	if c.http == nil {
		// Over a stream silence is an answer: the server does not know the method.
		probe, cancel = context.WithTimeout(ctx, cfg.DiscoverTimeout)
	}
	err := c.discover(probe)
	cancel()
	var rpc *jsonrpc.Error
	var lost *jsonrpc.LostError
	fresh := false
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return c, ctx.Err()
	case errors.As(err, &rpc) && isModernError(rpc):
		if rpc.Code != codeUnsupportedVersion || !supports(rpc.Data, "supported", IsLegacy) {
			return c, err
		}
	case errors.As(err, &rpc):
	case errors.As(err, &lost) && !lost.Sent, tenon.ErrorCode(err) == tenon.CodeAuth, tenon.ErrorCode(err) == tenon.CodeRateLimited,
		tenon.ErrorCode(err) == tenon.CodeDenied:
		return c, err // not a matter of the era
	case errors.As(err, &lost), c.http == nil:
		fresh = true // it ended, or it may still be busy with what it did not understand
	}
	cfg.Logger.Debug("not a modern MCP server; trying initialize", "reason", err.Error())
	if fresh {
		_ = c.Close() // spoiled
		if c, err = dial(ctx, cfg, log); err != nil {
			return nil, err
		}
	}
	log.begin(StepInitialize)
	if err = c.begin(ctx, LatestLegacy); errors.As(err, &rpc) && rpc.Code == codeUnsupportedVersion && supports(rpc.Data, "supported", isModern) {
		log.begin(StepDiscover) // it was only slow to start
		err = c.discover(ctx)
	}
	return c, err
}

func isModern(version string) bool { return version == Modern }

// supports reports whether a list of versions holds one that is wanted.
func supports(object []byte, key string, wanted func(string) bool) bool {
	found := false
	jsonrpc.Elements(jsonrpc.Field(object, key), func(v []byte) bool {
		s, _ := jsonrpc.String(v)
		found = found || wanted(s)
		return true
	})
	return found
}

// discover opens the modern era.
func (c *Client) discover(ctx context.Context) error {
	c.meta = c.modernMeta()
	if c.http != nil {
		c.http.SetProtocol(Modern, true)
	}
	ctx, cancel := c.patient(ctx)
	defer cancel()
	result, err := c.send(ctx, "server/discover", nil, nil, "", nil, nil)
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && rpc.Code == codeUnsupportedVersion && supports(rpc.Data, "supported", isModern) {
		result, err = c.send(ctx, "server/discover", nil, nil, "", nil, nil) // it names the very version that was asked for
	}
	if err == nil && !supports(result, "supportedVersions", isModern) {
		err = jsonrpc.Errorf(jsonrpc.CodeInternal, "server/discover names no version that is spoken here")
	}
	if err != nil {
		c.meta = nil
		if c.http != nil {
			c.http.SetProtocol("", false)
		}
		return err
	}
	c.info.Store(describe(Modern, result, jsonrpc.Field(jsonrpc.Field(result, "_meta"), metaServer)))
	return nil
}

// patient bounds a step of connecting by the time that there is to connect, and only
// where that is not known by that of a request: a server that is slow to start may be quick.
func (c *Client) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.RequestTimeout)
}

// describe reads what a server says about itself.
func describe(version string, result, server []byte) *Info {
	i := &Info{Protocol: version, Capabilities: append(json.RawMessage(nil), jsonrpc.Field(result, "capabilities")...)}
	i.Instructions, _ = jsonrpc.String(jsonrpc.Field(result, "instructions"))
	i.Name, _ = jsonrpc.String(jsonrpc.Field(server, "name"))
	i.Version, _ = jsonrpc.String(jsonrpc.Field(server, "version"))
	return i
}

func (c *Client) modernMeta() []byte {
	b := text(nil, metaVersion, Modern)
	var extensions []string
	if c.cfg.Tasks {
		extensions = append(extensions, ExtensionTasks)
	}
	b = member(b, metaCapabilities, c.cfg.Answers.capabilities(nil, extensions...))
	b = member(b, metaClient, c.identity())
	if c.cfg.Settings != nil {
		b = member(b, metaSettings, c.cfg.Settings)
	}
	if c.cfg.LogLevel != "" {
		b = text(b, metaLogLevel, c.cfg.LogLevel)
	}
	return b
}

func (c *Client) identity() []byte {
	return append(text(text([]byte{'{'}, "name", c.cfg.Name), "version", c.cfg.Version), '}')
}

// begin opens the legacy era.
func (c *Client) begin(ctx context.Context, version string) error {
	info, err := c.initialize(ctx, version)
	if err == nil {
		c.info.Store(info)
	}
	return err
}

// initialize makes the handshake of the legacy era (2025-11-25, lifecycle).
func (c *Client) initialize(ctx context.Context, version string) (*Info, error) {
	params := text([]byte{'{'}, "protocolVersion", version)
	params = member(params, "capabilities", c.cfg.Answers.capabilities(c.cfg.Settings))
	params = append(member(params, "clientInfo", c.identity()), '}')
	ctx, cancel := c.patient(ctx)
	defer cancel()
	id := c.peer.NextID()
	result, err := c.peer.Call(ctx, jsonrpc.Outgoing{ID: id, Method: "initialize",
		Body: jsonrpc.AppendRequest(nil, id, "initialize", params)})
	if err != nil {
		return nil, err
	}
	got, _ := jsonrpc.String(jsonrpc.Field(result, "protocolVersion"))
	if !IsLegacy(got) {
		return nil, tenon.Errorf(tenon.CodeProtocol, "the server wants protocol version %q, which tenon does not speak", got)
	}
	if c.http != nil {
		header := got
		if got < "2025-06-18" { // older ones know no such header
			header = ""
		}
		c.http.SetProtocol(header, false)
	}
	if err := c.peer.Notify(ctx, "notifications/initialized", nil); err != nil {
		return nil, fmt.Errorf("after initialize: %w", err)
	}
	info := describe(got, result, jsonrpc.Field(result, "serverInfo"))
	if c.cfg.LogLevel != "" && info.Has("logging") {
		c.wg.Go(c.setLevel)
	}
	return info, nil
}

// setLevel asks a legacy server for its log messages. It may refuse.
func (c *Client) setLevel() {
	if _, err := c.request(c.ctx, "logging/setLevel", text(nil, "level", c.cfg.LogLevel), nil, ""); err != nil {
		c.cfg.Logger.Debug("the log level is not set", "error", err.Error())
	}
}

// reinitialize begins a new session after the server forgot the named one. Any
// number of calls that were refused share it.
func (c *Client) reinitialize(ctx context.Context, session string) error {
	c.renew.Lock()
	defer c.renew.Unlock()
	if c.http.Session() != session {
		return nil // somebody else was faster
	}
	// The old session stays in use until there is a new one, so that no call goes
	// out without any.
	if _, err := c.initialize(ctx, c.Info().Protocol); err != nil {
		return err
	}
	c.http.DropOldSession()
	select {
	case c.renewed <- struct{}{}:
	default: // it is known already
	}
	return nil
}

// connectError gives a failed connect its code and the step where it ended.
func connectError(ctx context.Context, steps []Step, err error) error {
	e := &tenon.Error{Code: tenon.CodeUnreachable, Message: err.Error(),
		Err: &ConnectError{Step: steps[len(steps)-1].Name, Steps: steps, Err: err}}
	var cause *tenon.Error
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &cause):
		e.Code, e.Data = cause.Code, cause.Data
	case errors.Is(ctx.Err(), context.Canceled):
		e.Code, e.Message = tenon.CodeCancelled, "connecting was cancelled"
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = tenon.CodeTimeout, "it did not answer in time"
	case errors.As(err, &rpc):
		e.Code, e.Message, e.Data = tenon.CodeProtocol, "it refused to initialize: "+err.Error(), rpc.Data
	case errors.Is(err, jsonrpc.ErrSyntax):
		e.Code = tenon.CodeProtocol
	}
	return e
}
