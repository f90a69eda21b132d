package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ServerTool is a tool that a [Server] offers.
type ServerTool struct {
	// Definition is the tool in tools/list: an object with a name.
	Definition json.RawMessage
	// Call runs the tool and returns the raw result object. A *jsonrpc.Error is returned to the client unchanged; any
	// other error becomes a result with isError. The context ends when the caller cancels or is gone.
	Call func(ctx context.Context, r *ToolRequest) (json.RawMessage, error)
	// Quick says that Call does not wait, neither for I/O nor for a timer. Over a stream the reader then calls it
	// directly.
	Quick bool
}

// AskFunc sends a request to a client and waits for its response. If the client refuses, the error is a
// *jsonrpc.Error.
type AskFunc func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// ToolRequest is one tools/call as the server sees it.
type ToolRequest struct {
	Name      string
	Arguments json.RawMessage // {} if there are none
	Meta      json.RawMessage // _meta as received
	Responses json.RawMessage // inputResponses of a repeated call (2026-07-28)
	State     string          // its requestState
	Modern    bool
	Key       string // tenon.Call.Key, if the client is tenon
	// Capabilities is the object of capabilities that the caller declared.
	Capabilities json.RawMessage
	Task         json.RawMessage // the requested task (2025-11-25); nil if none is requested
	// LogLevel is the minimum level of the log messages that the caller wants, or "" if it named none.
	LogLevel string
	// Client is how the caller names itself.
	Client  ClientID
	headers paramHeaders
	notify  func(method string, params []byte)
	ask     AskFunc
	left    func() bool
	conn    *serverConn
}

// Session returns the session or stream of the client, over which it can be notified after the response.
func (r *ToolRequest) Session() Session { return Session{r.conn} }

// Session is a session of Streamable HTTP, or a stream. The zero value belongs to no client. Equal values are the same
// session.
type Session struct{ c *serverConn }

// Inner returns a copy of the request for a call of another tool, which its arguments describe. It has no headers.
func (r *ToolRequest) Inner() ToolRequest {
	inner := *r
	inner.headers = paramHeaders{}
	return inner
}

// Notify sends a notification to the client. It does nothing after the end of the session, and for a request without
// one.
func (s Session) Notify(method string, params json.RawMessage) {
	if s.c == nil {
		return
	}
	s.c.s.mu.Lock()
	_, open := s.c.s.conns[s.c]
	s.c.s.mu.Unlock()
	if open {
		s.c.notify(method, params)
	}
}

// IsGone reports whether the caller has left, so that it will not receive the response. In the legacy era over HTTP
// this does not cancel the request.
func (r *ToolRequest) IsGone() bool { return r.left != nil && r.left() }

// Progress sends a progress notification, if the caller asked for progress.
func (r *ToolRequest) Progress(progress, total float64, message string) {
	token := rawjson.Field(r.Meta, "progressToken")
	if token == nil || r.notify == nil {
		return
	}
	b := member([]byte{'{'}, "progressToken", token)
	b = member(b, "progress", strconv.AppendFloat(nil, progress, 'g', -1, 64))
	if total > 0 {
		b = member(b, "total", strconv.AppendFloat(nil, total, 'g', -1, 64))
	}
	if message != "" {
		b = text(b, "message", message)
	}
	r.notify("notifications/progress", append(b, '}'))
}

// Log sends a log message, unless its level is below the requested one. In the modern era, nothing is sent unless the
// request named a level.
func (r *ToolRequest) Log(level string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		return
	}
	r.LogRaw(append(member(text([]byte{'{'}, "level", level), "data", raw), '}'))
}

// LogRaw is like Log; params are the raw params of the message.
func (r *ToolRequest) LogRaw(params json.RawMessage) {
	if r.notify == nil || r.Modern && r.LogLevel == "" ||
		levelOf(rawjson.String(rawjson.Field(params, "level"))) < levelOf(r.LogLevel) && r.LogLevel != "" {
		return
	}
	r.notify("notifications/message", params)
}

// Ask sends a request to the caller and waits for the response (legacy era). If the caller refuses, the error is a
// *jsonrpc.Error.
func (r *ToolRequest) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if r.ask == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the caller cannot be asked")
	}
	return r.ask(ctx, method, params)
}

// ServerConfig configures a [Server].
type ServerConfig struct {
	Name, Version, Instructions string
	Tools                       []ServerTool
	// Source offers the tools instead of Tools. [Server.ListChanged] notifies clients of changes.
	Source ToolSource
	// Private says that the lists differ between callers, so that no cache may share them.
	Private bool
	// Resources are the resources that clients can read. If empty, the server does not declare resources.
	Resources []ServerResource
	// PageSize is the number of tools on one page; 0 means all.
	PageSize int
	// NoLegacy and NoModern disable an era.
	NoLegacy, NoModern bool
	// Observe is called with every request and notification before it is handled. Its error becomes the answer. Tests
	// inject faults here. It may be nil.
	Observe func(ctx context.Context, method string, params []byte) error
	// Joined is called when a legacy client has initialized, and Left when its connection or session has ended. Seen is
	// called before every other request, in both eras. They must not block, and may be nil.
	Joined, Seen, Left func(ClientID)
	// Watch begins to watch a resource for a client; see [Server.ResourceUpdated]. If nil, resources cannot be
	// watched.
	Watch WatchFunc
	// Initialized is called in a new goroutine after a legacy client has initialized, with a function that asks the
	// client. Its context ends with the connection. It may be nil.
	Initialized func(ctx context.Context, ask AskFunc)
	// Offers handles requests about prompts and resources (prompts/list, prompts/get, resources/list,
	// resources/templates/list, resources/read). A nil result means that there is no such method. If Offers is nil,
	// the server has neither prompts nor resources.
	Offers func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Extensions are declared to modern clients, by name. Extra handles their methods. If Extra is nil, there are
	// none.
	Extensions []string
	Extra      ExtraFunc
	// WatchTask begins to watch a task for a client (extension Tasks). If nil, subscriptions to all tasks are accepted;
	// see [Server.TaskChanged].
	WatchTask WatchTaskFunc
	// Completions declares completions. Offers handles them (completion/complete).
	Completions bool
	// OldTasks declares tasks of revision 2025-11-25 to legacy clients. Extra handles their methods, too.
	OldTasks bool
	Logger   *slog.Logger // if nil, nothing is logged
}

// ServerResource is one resource of a [Server].
type ServerResource struct {
	URI, Name, MimeType string
	Text                string
}

type requestKey struct{}

// RequestOf returns the request that [ServerConfig.Offers] or [ServerConfig.Watch] handles, with the name and arguments
// of its params and the capabilities of its client. It returns nil outside of these functions.
func RequestOf(ctx context.Context) *ToolRequest {
	r, _ := ctx.Value(requestKey{}).(*ToolRequest)
	return r
}

type askKey struct{}

// AskOf returns the function that sends requests to the client of an [ExtraFunc]'s request, or nil if there is none.
func AskOf(ctx context.Context) AskFunc {
	f, _ := ctx.Value(askKey{}).(AskFunc)
	return f
}

// ExtraFunc handles a method of an extension. params and meta are unchanged.
type ExtraFunc func(ctx context.Context, method string, params, meta json.RawMessage) (json.RawMessage, error)

// Server handles MCP requests in both eras. All state about clients belongs to connections, so one Server serves any
// number of connections at once. Its tools can be replaced while it runs.
type Server struct {
	cfg          ServerConfig
	instructions atomic.Pointer[string]

	mu     sync.Mutex
	tools  []ServerTool
	byName map[string]int
	conns  map[*serverConn]bool
}

// NewServer returns a server. It returns an error if a definition has no name.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, conns: map[*serverConn]bool{}}
	s.SetInstructions(cfg.Instructions)
	return s, s.SetTools(cfg.Tools)
}

// SetInstructions replaces the instructions for clients that connect or discover from now on.
func (s *Server) SetInstructions(text string) { s.instructions.Store(&text) }

// SetTools replaces the tools and notifies the subscribers.
func (s *Server) SetTools(tools []ServerTool) error {
	byName := make(map[string]int, len(tools))
	for i, t := range tools {
		name, ok := rawjson.ParseString(rawjson.Field(t.Definition, "name"))
		if !ok || name == "" {
			return errors.New("mcp: a tool has no name")
		}
		byName[name] = i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.byName != nil
	s.tools, s.byName = slices.Clone(tools), byName
	if changed {
		s.tell("tools")
	}
	return nil
}

// serverConn is one connection, or one request over HTTP, as the handlers see it.
type serverConn struct {
	s      *Server
	notify func(method string, params []byte)
	ask    AskFunc
	left   func() bool // reports whether the client has left; nil if that ends the context
	// headers are the headers of the only request of the connection.
	headers paramHeaders

	mu      sync.Mutex
	version string            // legacy: the agreed revision
	can     json.RawMessage   // legacy: the capabilities that the client declared
	id      ClientID          // legacy: how the client named itself; without Protocol before initialize
	level   string            // legacy: the minimum level of the log messages that the client wants
	watched map[string]func() // legacy: watched resources → the functions that end the watches
	gone    bool              // the client is gone
	subs    map[string][]byte // modern: id of the listen request → its filter
	parent  *serverConn       // the legacy session of a request over HTTP; nil for any other connection
}

// Serve handles the requests on a stream until the stream or the context ends.
func (s *Server) Serve(ctx context.Context, stream jsonrpc.Stream) error {
	c := &serverConn{s: s, subs: map[string][]byte{}}
	var peer *jsonrpc.Peer
	peer = jsonrpc.New(stream, jsonrpc.Config{
		Handle: func(ctx context.Context, r *jsonrpc.Request) ([]byte, error) { return c.handle(ctx, r) },
		Quick:  func(r *jsonrpc.Request) bool { return r.Method == "tools/call" && s.quick(r.Params) },
		Notice: func(method string, params []byte) {
			if s.cfg.Observe != nil {
				_ = s.cfg.Observe(ctx, method, params) // a notification has no response
			}
			if method == "notifications/cancelled" {
				peer.CancelRequest(rawjson.Field(params, "requestId"))
			}
			if method == "notifications/initialized" && s.cfg.Initialized != nil {
				go s.cfg.Initialized(ctx, c.ask) // ends with the connection
			}
		},
		Abandoned: func(id int64, _ error) {
			params := append(member([]byte{'{'}, "requestId", strconv.AppendInt(nil, id, 10)), '}')
			go func() { _ = peer.Notify(ctx, "notifications/cancelled", params) }() // the client is gone
		},
		Logger: s.cfg.Logger,
	})
	// errors do not matter: the client is gone
	c.notify = func(method string, params []byte) { _ = peer.Notify(ctx, method, params) }
	c.ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		id := peer.NextID()
		return peer.Call(ctx, jsonrpc.Outgoing{ID: id, Method: method,
			Body: jsonrpc.AppendRequest(nil, id, method, params)})
	}
	s.join(c)
	defer s.leave(c)
	return peer.Run(ctx)
}

// Handle handles a single request, such as a POST of Streamable HTTP. notify sends the notifications that belong to
// it. version is the version in the request's header, or "". A modern request names its version in _meta.
func (s *Server) Handle(ctx context.Context, r *jsonrpc.Request, version string,
	notify func(method string, params []byte)) ([]byte, error) {
	return s.single(ctx, r, version, paramHeaders{}, notify)
}

// single is Handle with the headers of arguments.
func (s *Server) single(ctx context.Context, r *jsonrpc.Request, version string, headers paramHeaders,
	notify func(method string, params []byte)) ([]byte, error) {
	c := &serverConn{s: s, notify: notify, headers: headers, subs: map[string][]byte{}}
	if IsLegacy(version) {
		c.version = version
	}
	if r.Method == "subscriptions/listen" {
		s.join(c)
		defer s.leave(c)
	}
	return c.handle(ctx, r)
}

// quick reports whether a request calls a tool that is Quick.
func (s *Server) quick(params []byte) bool {
	if s.cfg.Observe != nil {
		return false // Observe may wait
	}
	name := rawjson.String(rawjson.Field(params, "name"))
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	return ok && s.tools[i].Quick
}

func (s *Server) join(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
}

func (s *Server) leave(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	go c.end()
}

// versions returns the JSON list of the revisions that the server supports.
func (s *Server) versions() []byte {
	b := []byte{'['}
	if !s.cfg.NoModern {
		b = rawjson.AppendString(b, Modern)
	}
	for _, v := range legacy {
		if s.cfg.NoLegacy {
			break
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = rawjson.AppendString(b, v)
	}
	return append(b, ']')
}

func (c *serverConn) handle(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	if c.s.cfg.Observe != nil {
		if err := c.s.cfg.Observe(ctx, r.Method, r.Params); err != nil {
			return nil, err
		}
	}
	meta := rawjson.Field(r.Params, "_meta")
	version, named := rawjson.ParseString(rawjson.Field(meta, metaVersion))
	switch {
	case len(r.Params) > 0 && !rawjson.IsObject(r.Params) && string(r.Params) != "null":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params is not an object")
	case named && (version != Modern || c.s.cfg.NoModern):
		e := jsonrpc.Errorf(codeUnsupportedVersion, "unsupported protocol version %q", version)
		if c.s.cfg.NoModern {
			e = jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
		} else {
			e.Data = append(text(member([]byte{'{'}, "supported", c.s.versions()), "requested", version), '}')
		}
		return nil, e
	case named:
		return c.modern(ctx, r, meta)
	case r.Method == "server/discover":
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
	case c.s.cfg.NoLegacy:
		e := jsonrpc.Errorf(codeUnsupportedVersion, "this server speaks %s only; requests name it in _meta", Modern)
		e.Data = append(member([]byte{'{'}, "supported", c.s.versions()), '}')
		return nil, e
	}
	return c.legacy(ctx, r, meta)
}

// legacy handles a request of the legacy era.
func (c *serverConn) legacy(ctx context.Context, r *jsonrpc.Request, meta []byte) ([]byte, error) {
	if r.Method != "initialize" {
		c.seen(c.named())
	}
	switch r.Method {
	case "initialize":
		version, ok := rawjson.ParseString(rawjson.Field(r.Params, "protocolVersion"))
		if !ok {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params name no protocolVersion")
		}
		if !IsLegacy(version) {
			version = LatestLegacy
		}
		c.mu.Lock()
		c.version, c.can = version, append(json.RawMessage(nil), rawjson.Field(r.Params, "capabilities")...)
		c.mu.Unlock()
		c.name(clientID(rawjson.Field(r.Params, "clientInfo"), version))
		b := text([]byte{'{'}, "protocolVersion", version)
		return append(c.s.describe(b, "serverInfo"), '}'), nil
	case "ping":
		return []byte("{}"), nil
	case "logging/setLevel":
		c.setLevel(r.Params)
		return []byte("{}"), nil
	case "resources/subscribe":
		if c.s.cfg.Watch != nil {
			return c.watch(context.WithValue(ctx, requestKey{}, c.toolRequest(r, meta, false)), r.Params)
		}
	case "resources/unsubscribe":
		if c.s.cfg.Watch != nil {
			return c.unwatch(r.Params), nil
		}
	}
	return c.common(ctx, r, meta, false)
}

// modern handles a request of the modern era.
func (c *serverConn) modern(ctx context.Context, r *jsonrpc.Request, meta []byte) ([]byte, error) {
	if v := rawjson.Field(meta, metaCapabilities); len(v) == 0 || v[0] != '{' {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "_meta names no %s", metaCapabilities)
	}
	c.seen(clientID(rawjson.Field(meta, metaClient), Modern))
	switch r.Method {
	case "server/discover":
		b := member([]byte(`{"resultType":"complete",`+c.s.caching()), "supportedVersions", c.s.versions())
		return append(c.s.describe(b, ""), '}'), nil
	case "subscriptions/listen":
		return c.listen(context.WithValue(ctx, requestKey{}, c.toolRequest(r, meta, true)), r)
	}
	result, err := c.common(ctx, r, meta, true)
	if err != nil || rawjson.Field(result, "resultType") != nil {
		return result, err
	}
	return complete(result), nil
}

// resultComplete is the type of a result, which every modern result has.
const resultComplete = `"resultType":"complete"`

// complete adds the result type to a result. It does not change the other bytes.
func complete(object []byte) []byte {
	b := append(make([]byte, 0, len(object)+len(resultComplete)+1), '{')
	b = append(b, resultComplete...)
	if bytes.TrimLeft(object[1:], " \t\r\n")[0] != '}' {
		b = append(b, ',')
	}
	return append(b, object[1:]...)
}

// describe appends the server's information about itself.
func (s *Server) describe(b []byte, info string) []byte {
	can := []byte(`{"tools":{"listChanged":true},"logging":{}`)
	for _, list := range []string{"prompts", "resources"} {
		switch {
		case !s.lists()[list]:
		case list == "resources" && s.cfg.Watch != nil:
			can = member(can, list, []byte(`{"subscribe":true,"listChanged":true}`))
		default:
			can = member(can, list, []byte(`{"listChanged":true}`))
		}
	}
	if s.cfg.Completions {
		can = member(can, "completions", []byte("{}"))
	}
	if s.cfg.OldTasks && info != "" {
		can = member(can, "tasks", []byte(`{"cancel":{},"requests":{"tools":{"call":{}}}}`))
	}
	if len(s.cfg.Extensions) > 0 && info == "" {
		all := []byte{'{'}
		for _, e := range s.cfg.Extensions {
			all = member(all, e, []byte("{}"))
		}
		can = member(can, "extensions", append(all, '}'))
	}
	b = member(b, "capabilities", append(can, '}'))
	id := append(text(text([]byte{'{'}, "name", s.cfg.Name), "version", s.cfg.Version), '}')
	if info != "" {
		b = member(b, info, id)
	} else {
		b = member(b, "_meta", append(member([]byte{'{'}, metaServer, id), '}'))
	}
	if about := *s.instructions.Load(); about != "" {
		b = text(b, "instructions", about)
	}
	return b
}

// common handles the methods that both eras have.
func (c *serverConn) common(ctx context.Context, r *jsonrpc.Request, meta []byte, modern bool) ([]byte, error) {
	if c.s.cfg.Offers != nil && !strings.HasPrefix(r.Method, "tools/") {
		ctx := context.WithValue(ctx, requestKey{}, c.toolRequest(r, meta, modern))
		if result, err := c.s.cfg.Offers(ctx, r.Method, json.RawMessage(r.Params)); result != nil || err != nil {
			return result, err
		}
	}
	switch r.Method {
	case "tools/list":
		return c.s.list(ctx, r.Params, modern)
	case "tools/call":
		return c.call(ctx, r, meta, modern)
	case "resources/list", "resources/templates/list", "resources/read":
		if len(c.s.cfg.Resources) > 0 {
			return c.s.resource(r, modern)
		}
	}
	if (modern || c.s.cfg.OldTasks) && c.s.cfg.Extra != nil {
		ctx = context.WithValue(ctx, askKey{}, AskFunc(c.ask))
		return c.s.cfg.Extra(ctx, r.Method, r.Params, meta)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
}
