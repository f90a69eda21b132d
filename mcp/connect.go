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

// Connect dials the server and finds out which era it speaks: it asks
// server/discover first, and what is neither an answer of a modern server nor
// one of its errors means initialize. A server that says nothing, or that ends
// at the unknown method, gets a fresh connection for that. Errors have code
// unreachable, auth_required, rate_limited, protocol, timeout or cancelled.
func Connect(ctx context.Context, cfg ClientConfig) (*Client, error) {
	cfg = cfg.withDefaults()
	start := time.Now()
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var asked time.Duration
	switch {
	case cfg.Protocol == Modern:
		err = c.discover(ctx)
	case cfg.Protocol != "":
		err = c.begin(ctx, cfg.Protocol)
	default:
		c, asked, err = find(ctx, cfg, c)
	}
	if err != nil {
		if c != nil {
			_ = c.Close() // the first error says more
		}
		return nil, connectError(ctx, err)
	}
	info := c.Info()
	info.Connected, info.Discovered = time.Since(start), asked
	c.info.Store(&info)
	c.listen()
	return c, nil
}

func dial(ctx context.Context, cfg ClientConfig) (*Client, error) {
	s, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return attach(cfg, s), nil
}

// find asks for the era and opens it. It returns the client that is to be used,
// or to be closed.
func find(ctx context.Context, cfg ClientConfig, c *Client) (*Client, time.Duration, error) {
	start := time.Now()
	probe, cancel := ctx, context.CancelFunc(func() {})
	if c.http == nil {
		// Over a stream silence is an answer: the server does not know the method.
		probe, cancel = context.WithTimeout(ctx, cfg.DiscoverTimeout)
	}
	err := c.discover(probe)
	cancel()
	asked := time.Since(start)
	var rpc *jsonrpc.Error
	var lost *jsonrpc.LostError
	fresh := false
	switch {
	case err == nil:
		return c, asked, nil
	case ctx.Err() != nil:
		return c, asked, ctx.Err()
	case errors.As(err, &rpc) && isModernError(rpc):
		if rpc.Code != codeUnsupportedVersion || !supports(rpc.Data, "supported", IsLegacy) {
			return c, asked, err
		}
	case errors.As(err, &rpc):
	case errors.As(err, &lost) && !lost.Sent, tenon.ErrorCode(err) == tenon.CodeAuth, tenon.ErrorCode(err) == tenon.CodeRateLimited:
		return c, asked, err // not a matter of the era
	case errors.As(err, &lost), c.http == nil:
		fresh = true // it ended, or it may still be busy with what it did not understand
	}
	cfg.Logger.Debug("not a modern MCP server; trying initialize", "reason", err.Error())
	if fresh {
		_ = c.Close() // spoiled
		if c, err = dial(ctx, cfg); err != nil {
			return nil, asked, err
		}
	}
	return c, asked, c.begin(ctx, LatestLegacy)
}

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
	isModern := func(v string) bool { return v == Modern }
	c.meta = c.modernMeta()
	if c.http != nil {
		c.http.SetProtocol(Modern, true)
	}
	result, err := c.request(ctx, "server/discover", nil, nil, "")
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && rpc.Code == codeUnsupportedVersion && supports(rpc.Data, "supported", isModern) {
		result, err = c.request(ctx, "server/discover", nil, nil, "") // it names the very version that was asked for
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
	b = member(b, metaCapabilities, []byte("{}"))
	return member(b, metaClient, c.identity())
}

func (c *Client) identity() []byte {
	return append(text(text([]byte{'{'}, "name", c.cfg.Name), "version", c.cfg.Version), '}')
}

// capabilities declares what there is a handler for, and nothing else.
func (c *Client) capabilities() []byte {
	b := []byte{'{'}
	for _, h := range []struct{ method, name string }{
		{"elicitation/create", "elicitation"}, {"roots/list", "roots"}, {"sampling/createMessage", "sampling"},
	} {
		if c.cfg.Handlers[h.method] != nil {
			b = member(b, h.name, []byte("{}"))
		}
	}
	return append(b, '}')
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
	params = member(params, "capabilities", c.capabilities())
	params = append(member(params, "clientInfo", c.identity()), '}')
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.RequestTimeout, errRequestTimeout)
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
	if c.http != nil && got >= "2025-06-18" {
		c.http.SetProtocol(got, false)
	}
	if err := c.peer.Notify(ctx, "notifications/initialized", nil); err != nil {
		return nil, fmt.Errorf("after initialize: %w", err)
	}
	return describe(got, result, jsonrpc.Field(result, "serverInfo")), nil
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
	c.http.ResetSession(session) // a server that has no sessions any more
	return nil
}

// connectError gives a failed connect its code.
func connectError(ctx context.Context, err error) error {
	var e *tenon.Error
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &e):
		return err
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return tenon.Errorf(tenon.CodeTimeout, "it did not answer in time: %w", err)
	case errors.As(err, &rpc):
		return tenon.Errorf(tenon.CodeProtocol, "it refused to initialize: %w", err)
	case errors.Is(err, jsonrpc.ErrSyntax):
		return tenon.Errorf(tenon.CodeProtocol, "%w", err)
	}
	return tenon.Errorf(tenon.CodeUnreachable, "%w", err)
}
