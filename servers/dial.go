package servers

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// dialed is a new connection with the facts known about it.
type dialed struct {
	conn         connection
	protocol     string
	found        string // the transport that auto detected
	identity     string
	capabilities []string // by name, sorted
	phases       []Phase
}

// dial connects once, or joins an existing connection.
func (s *Server) dial(ctx context.Context) (*dialed, error) {
	cfg := s.cfg
	if s.opts.Resolve != nil {
		resolved, err := s.opts.Resolve(ctx)
		if err != nil {
			return nil, err
		}
		cfg = resolved.WithDefaults()
	}
	cfg = s.withRoots(cfg)
	if s.cfg.Share && s.opts.Pool != nil && !s.single {
		return s.opts.Pool.dial(ctx, s, cfg)
	}
	return s.dialAs(ctx, cfg, s)
}

// dialAs makes a connection; on receives the connection's notifications. dialAs remembers the detected era, so that
// the next connection does not detect it again.
func (s *Server) dialAs(ctx context.Context, cfg Config, on listener) (*dialed, error) {
	s.mu.Lock()
	protocol, attempt := s.protocol, s.status.Starts
	s.mu.Unlock()
	if cfg.Protocol != ProtocolAuto {
		protocol = cfg.Protocol
	}
	c, err := s.open(ctx, cfg, protocol, attempt, on)
	if tenon.ErrorCode(err) == tenon.CodeProtocol && protocol != "" && cfg.Protocol == ProtocolAuto &&
		ctx.Err() == nil {
		// The remembered era is outdated.
		s.mu.Lock()
		s.found = ""
		s.mu.Unlock()
		c, err = s.open(ctx, cfg, "", attempt, on)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.protocol, s.found = "", "" // they may describe a different server
		return nil, err
	}
	info := c.Info()
	info.Protocol = s.masked(info.Protocol)
	s.protocol, s.status.Found = info.Protocol, s.found
	return &dialed{conn: c, protocol: info.Protocol, found: s.found,
		identity:     s.masked(strings.TrimSpace(info.Name + " " + info.Version)),
		capabilities: s.maskedAll(names(info.Capabilities)),
		phases:       phases(info.Steps)}, nil
}

// open makes an MCP client over the configured transport.
func (s *Server) open(ctx context.Context, cfg Config, protocol string, attempt int, on listener) (*mcp.Client, error) {
	client := mcp.ClientConfig{
		Dial:           func(ctx context.Context) (mcp.Stream, error) { return s.stream(ctx, cfg, attempt, on) },
		Protocol:       protocol,
		Name:           "tenon",
		Version:        s.opts.Version,
		RequestTimeout: cfg.RequestTimeout,
		Answers:        cfg.Answers(),
		Step:           func(name string) { s.step(attempt, name) },
		Notice:         on.notice,
		Admits:         s.admits,
		Tasks:          true,
		Settings:       cfg.settings(),
		LogLevel:       cfg.LogLevel,
		Changed:        on.changed,
		Health:         on.health,
		Logger:         s.log,
	}
	if s.opts.Frames {
		client.Trace = s.trace
	}
	if s.single {
		client.Changed = nil // the connection lives for one call only
	}
	switch cfg.Transport {
	case TransportAuto:
		return s.find(ctx, cfg, client, attempt, on)
	case TransportSSE:
		client.Protocol = legacyOf(client.Protocol)
	}
	return mcp.Connect(ctx, client)
}

// legacyOf returns the revision to begin with over HTTP+SSE. No modern server uses that transport.
func legacyOf(protocol string) string {
	if mcp.IsLegacy(protocol) {
		return protocol
	}
	return mcp.LatestLegacy
}

// step records that a step of an attempt has begun, so that the status shows the step even if the attempt does not
// return in time.
func (s *Server) step(attempt int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialed != nil && s.status.Starts == attempt {
		s.endStep()
		s.status.Phases = append(s.status.Phases, Phase{Name: name})
	}
}

// endStep records the duration of the running step. The caller holds the lock.
func (s *Server) endStep() {
	now := time.Now()
	// Copy, because statuses returned earlier share the old slice.
	if s.status.Phases = slices.Clone(s.status.Phases); len(s.status.Phases) > 0 {
		s.status.Phases[len(s.status.Phases)-1].Millis = now.Sub(s.stepped).Milliseconds()
	}
	s.stepped = now
}

// names returns the keys of a JSON object, sorted.
func names(object json.RawMessage) []string {
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return nil // the server declares no readable capabilities
	}
	return slices.Sorted(maps.Keys(m))
}

func phases(steps []mcp.Step) []Phase {
	var list []Phase
	for _, step := range steps {
		list = append(list, Phase{step.Name, step.Took.Milliseconds()})
	}
	return list
}

// stream opens the transport.
func (s *Server) stream(ctx context.Context, cfg Config, attempt int, on listener) (mcp.Stream, error) {
	switch cfg.Transport {
	case TransportStdio:
		if s.opts.Check != nil {
			if err := s.opts.Check(); err != nil {
				return nil, err
			}
		}
		p, err := transport.DialStdio(ctx, transport.StdioConfig{
			Command: cfg.Command, Args: cfg.Args, Dir: cfg.Cwd, Env: s.environ(cfg), Encoding: cfg.Encoding,
			Stderr: on.said,
			Logger: s.log, Reaper: s.opts.Reaper,
		})
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		if s.dialed != nil && s.status.Starts == attempt {
			s.process = p
		}
		s.mu.Unlock()
		return p, nil
	case TransportWebSocket:
		w, err := transport.DialWebSocket(ctx, transport.WebSocketConfig{URL: cfg.URL, Headers: s.headers(cfg),
			Admit: s.opts.Admit, Logger: s.log})
		if err != nil {
			return nil, err // not w: a nil *WebSocket in a Stream would not be nil
		}
		return w, nil
	}
	signIn, err := s.signIn(cfg)
	if err != nil {
		return nil, err
	}
	web := transport.HTTPConfig{
		URL: cfg.URL, Headers: s.headers(cfg), IdleTimeout: cfg.SSEReadTimeout,
		KeepSession: cfg.TerminateOnClose != nil && !*cfg.TerminateOnClose,
		Plain:       cfg.Transport == TransportJSONRPC,
		SignIn:      signIn,
		Admit:       s.opts.Admit,
		Logger:      s.log,
	}
	if cfg.Transport == TransportSSE {
		e, err := transport.DialSSE(ctx, web)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	h, err := transport.DialHTTP(web)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// settingsVar is the variable that passes `config` to a process.
const settingsVar = "MCP_CONFIG"

// environ returns the whole environment of the process: the inherited variables, and the variables of the entry.
func (s *Server) environ(cfg Config) []string {
	env := []string{}
	for _, name := range cfg.InheritEnv {
		if _, own := cfg.Env[name]; own || s.opts.LookupEnv == nil {
			continue
		}
		if v, ok := s.opts.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range cfg.Env {
		env = append(env, name+"="+v)
	}
	if settings := cfg.settings(); settings != nil {
		if _, own := cfg.Env[settingsVar]; !own {
			env = append(env, settingsVar+"="+string(settings))
		}
	}
	return env
}

// levels maps the protocol's log levels (RFC 5424) to levels of slog.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo,
	"warning": slog.LevelWarn, "error": slog.LevelError, "critical": slog.LevelError, "alert": slog.LevelError,
	"emergency": slog.LevelError}

// ranks lists the levels, the least important first.
var ranks = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// isKept reports whether a message is important enough to be kept. Messages of an unknown level are kept.
func isKept(level, least string) bool {
	i := slices.Index(ranks, level)
	return i < 0 || i >= slices.Index(ranks, least)
}

// admits reports whether a notification of the server is within the limit of its kind.
func (s *Server) admits(method string) bool {
	switch method {
	case "notifications/progress":
		return s.flood.admit(kindProgress)
	case "notifications/tasks":
		return s.flood.admit(kindTask)
	}
	return true
}

// dropped logs a report about messages that were dropped because they arrived too fast.
func (s *Server) dropped(text string) {
	s.note("state", text)
	s.log.Warn("MCP server: " + text)
}

// said records a line that the server's process wrote to stderr.
func (s *Server) said(line string) {
	if !s.flood.admit(kindStderr) {
		return
	}
	line = clean(line)
	s.log.Debug("stderr", "line", line)
	s.note("stderr", line)
	if slow := s.slow.Load(); slow != nil {
		slow.said(s.masked(line))
	}
}

// notice logs a log message of the server, and passes other notifications on. The debug log names the notifications
// that have no effect.
func (s *Server) notice(method string, params json.RawMessage) {
	switch method {
	case "notifications/message":
		s.logged(params)
	case "notifications/subscriptions/acknowledged": // concerns only the connection
	default:
		if method != "notifications/resources/updated" && s.log.Enabled(context.Background(), slog.LevelDebug) &&
			s.flood.admit(kindUnused) {
			s.log.Debug("MCP server sent a notification that tenon does not use", "method", clean(method))
		}
		s.notify(Notification{Method: method, Params: params})
	}
}

// logged logs a log message of the server, and passes it on.
func (s *Server) logged(params json.RawMessage) {
	const method = "notifications/message"
	level := rawjson.String(rawjson.Field(params, "level"))
	if !isKept(level, s.cfg.LogLevel) || !s.flood.admit(kindLog) {
		return
	}
	s.notify(Notification{Method: method, Params: params})
	data := rawjson.Field(params, "data")
	text, ok := "", false
	if len(data) <= maxNotice {
		text, ok = rawjson.ParseString(data)
	}
	if !ok { // the data may be any JSON value
		text = string(data[:min(len(data), maxNotice)])
	}
	level, text = clean(level), clean(text)
	said, attrs := level, []any{"mcp_level", level}
	if name := logger(params); name != "" {
		said += " (" + name + ")"
		attrs = append(attrs, "mcp_logger", name)
	}
	s.note("notice", said+": "+text)
	s.log.Log(context.Background(), levels[level], "MCP server says", append(attrs, "data", text)...)
}

// logger returns the logger that a log message names, or "" if it names none.
func logger(params json.RawMessage) string {
	raw := rawjson.Field(params, "logger")
	if len(raw) > maxNotice {
		return ""
	}
	return clean(rawjson.String(raw))
}

// maxNotice is the maximum size, in bytes, of a log message that is decoded. The text that is shown is shorter.
const maxNotice = 8 << 10
