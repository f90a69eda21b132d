package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// The names of the steps of connecting; see [Step].
const (
	StepStart      = "start"      // the transport is dialed: a process is started, or, over HTTP, nothing is sent yet
	StepDiscover   = "discover"   // server/discover
	StepInitialize = "initialize" // initialize, and the notification after it
)

// Step is a step of connecting, and how long it took.
type Step struct {
	Name string
	Took time.Duration
}

// ConnectError reports the step at which connecting failed. It is in the chain of every error of [Connect].
type ConnectError struct {
	Step  string // the name of the last of Steps
	Steps []Step // all that were begun, in order
	Err   error  // the cause
}

// Error is the text of the cause.
func (e *ConnectError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// steps records the steps of a connect.
type steps struct {
	list []Step
	at   time.Time
	tell func(name string)
}

// begin ends the current step and begins another. The name "" begins none.
func (s *steps) begin(name string) {
	now := time.Now()
	if n := len(s.list); n > 0 {
		s.list[n-1].Took = now.Sub(s.at)
	}
	s.at = now
	if name != "" {
		s.list = append(s.list, Step{Name: name})
		if s.tell != nil {
			s.tell(name)
		}
	}
}

// Connect dials the server and detects its era. It first sends server/discover. If the response is neither a result
// nor an error of a modern server, it sends initialize. Over a stream it also does so after silence, unless it turns
// out that the server was only slow to start. If the server ends because of the unknown method, or stays silent,
// Connect makes a new connection. Errors have code unreachable, auth_required, rate_limited, protocol, timeout or
// cancelled, and wrap a [*ConnectError].
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
	c.cfg.Dial, c.cfg.Step = nil, nil // free the memory that they refer to
	c.listen()
	return c, nil
}

// connect returns the client. If it also returns an error, the caller must close the client.
func connect(ctx context.Context, cfg ClientConfig, log *steps) (*Client, error) {
	c, err := dial(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	switch {
	case c.isPlain(): // such a server needs no handshake
		c.info.Store(&Info{Capabilities: json.RawMessage(`{"tools":{}}`)})
		return c, nil
	case cfg.Protocol == Modern:
		log.begin(StepDiscover)
		return c, c.begin(ctx, Modern)
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

// patient bounds a step of connecting by the timeout of connecting. Without one, it uses the timeout of a request; a
// server may be slow to start and quick afterwards.
func (c *Client) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.RequestTimeout)
}

// describe reads the server's information about itself.
func describe(version string, result, server []byte) *Info {
	i := &Info{Protocol: version, Capabilities: append(json.RawMessage(nil), rawjson.Field(result, "capabilities")...)}
	i.Instructions = rawjson.String(rawjson.Field(result, "instructions"))
	i.Name = rawjson.String(rawjson.Field(server, "name"))
	i.Version = rawjson.String(rawjson.Field(server, "version"))
	return i
}

// metaFor returns the members of _meta of a modern request. It uses the capabilities and the log level of the
// request's caller.
func (c *Client) metaFor(caller *Caller) []byte {
	if caller == nil || len(c.meta) == 0 || c.cfg.Answers.Client == (ClientAnswers{}) && caller.LogLevel == "" {
		return c.meta
	}
	level := c.cfg.LogLevel
	if caller.LogLevel != "" && (level == "" || levelOf(caller.LogLevel) < levelOf(level)) {
		level = caller.LogLevel
	}
	return c.modernMeta(c.cfg.Answers.For(caller), level)
}

func (c *Client) modernMeta(answers Answers, level string) []byte {
	b := text(nil, metaVersion, Modern)
	var extensions []string
	if c.cfg.Tasks {
		extensions = append(extensions, ExtensionTasks)
	}
	b = member(b, metaCapabilities, answers.capabilities(true, nil, extensions...))
	b = member(b, metaClient, c.identity())
	if c.cfg.Settings != nil {
		b = member(b, metaSettings, c.cfg.Settings)
	}
	if level != "" {
		b = text(b, metaLogLevel, level)
	}
	return b
}

func (c *Client) identity() []byte {
	return append(text(text([]byte{'{'}, "name", c.cfg.Name), "version", c.cfg.Version), '}')
}

// initialize makes the handshake of the legacy era (2025-11-25, lifecycle).
func (c *Client) initialize(ctx context.Context, version string) (*Info, error) {
	info, err := c.propose(ctx, version)
	if err != nil {
		return nil, err
	}
	return info, c.accept(ctx, info)
}

// propose sends initialize and returns the server's information, with the revision that the server chose.
func (c *Client) propose(ctx context.Context, version string) (*Info, error) {
	params := text([]byte{'{'}, "protocolVersion", version)
	params = member(params, "capabilities", c.cfg.Answers.all().capabilities(false, c.cfg.Settings))
	params = append(member(params, "clientInfo", c.identity()), '}')
	ctx, cancel := c.patient(ctx)
	defer cancel()
	id := c.peer.NextID()
	result, err := c.peer.Call(ctx, jsonrpc.Outgoing{ID: id, Method: "initialize",
		Body: jsonrpc.AppendRequest(nil, id, "initialize", params)})
	if err != nil {
		return nil, err
	}
	got := rawjson.String(rawjson.Field(result, "protocolVersion"))
	if !IsLegacy(got) {
		return nil, tenon.Errorf(tenon.CodeProtocol, "the server wants protocol version %q, which tenon does not speak",
			got)
	}
	return describe(got, result, rawjson.Field(result, "serverInfo")), nil
}

// accept completes the handshake.
func (c *Client) accept(ctx context.Context, info *Info) error {
	if c.http != nil {
		header := info.Protocol
		if header < "2025-06-18" { // older revisions have no such header
			header = ""
		}
		c.http.SetProtocol(header, false)
	}
	if err := c.peer.Notify(ctx, "notifications/initialized", nil); err != nil {
		return fmt.Errorf("after initialize: %w", err)
	}
	if c.cfg.LogLevel != "" && info.Has("logging") {
		c.wg.Go(c.setLevel)
	}
	return nil
}

// setLevel asks a legacy server to send log messages. The server may refuse.
func (c *Client) setLevel() {
	if _, err := c.request(c.ctx, "logging/setLevel", text(nil, "level", c.cfg.LogLevel), ""); err != nil {
		c.cfg.Logger.Debug("the log level is not set", "error", err.Error())
	}
}

// reinitialize begins a new session after the server has forgotten the given one. All calls that were refused share
// the new session.
func (c *Client) reinitialize(ctx context.Context, session string) error {
	c.renew.Lock()
	defer c.renew.Unlock()
	if c.http.Session() != session {
		return nil // another call has already begun a new session
	}
	// The old session stays in use until there is a new one, so that every call is sent with a session.
	if _, err := c.initialize(ctx, c.Info().Protocol); err != nil {
		return err
	}
	c.http.DropOldSession()
	if c.ctx.Err() == nil && len(c.watches.byURI()) > 0 {
		c.wg.Go(c.rewatch)
	}
	select {
	case c.renewed <- struct{}{}:
	default: // a value is already waiting
	}
	return nil
}

// connectError returns the error of a failed connect, with its code and the failed step.
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
