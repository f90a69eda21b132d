package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// Stream is a connection to a server, dialed by package transport.
type Stream interface {
	jsonrpc.Stream
	Close() error
}

// ClientConfig configures a connection. Dial is required.
type ClientConfig struct {
	// Dial makes a connection. It is called a second time if the detection of the era has made the first one
	// unusable.
	Dial func(ctx context.Context) (Stream, error)
	// Protocol is the revision to use. If empty, it is detected.
	Protocol string
	// Name and Version are sent to the server.
	Name, Version string
	// Answers says which requests of the server are answered. During a call tenon.Call.Ask answers them, otherwise
	// Asker. In the modern era a question is the result of the call.
	Answers Answers
	// Tasks declares the Tasks extension of the modern era: a call may continue as a task, see
	// [tenon.InputRequired.Resume].
	Tasks bool
	// Settings is an object for the server. It is sent as the experimental capability "tenon/config" or, in the
	// modern era, in _meta of each request. If nil, nothing is sent.
	Settings json.RawMessage
	// LogLevel is the minimum level of the log messages that the server is asked to send. If empty, the server
	// decides; in the modern era it then sends none.
	LogLevel string
	// Asker answers questions of a legacy server, except during a call that has its own Ask. If nil, they are
	// declined.
	Asker Asker
	// Notice receives the notifications that the client itself does not use, including log messages. It must not
	// block. If nil, they are dropped.
	Notice func(method string, params json.RawMessage)
	// Admits reports whether a notification of progress or of a task, which causes work, is handled. The reader calls
	// it, so it must not block. If nil, all are handled.
	Admits func(method string) bool
	// Changed is called after the server reported that a list changed ("tools", "prompts", "resources"), at most
	// every 100 ms. It must not block.
	Changed func(list string)
	// Health is called with the reason when the subscription to changes, or the stream of notifications of a legacy
	// session, breaks. It is called with nil when the stream is open again. It must not block. It may be nil.
	Health func(err error)
	// Step is called with its name when a step of connecting begins. It may be nil.
	Step func(name string)
	// DiscoverTimeout is how long server/discover waits alone for an answer over a stream; 0 means 1.5 s. After that
	// initialize is sent as well, since some legacy servers never answer server/discover.
	DiscoverTimeout time.Duration
	// RequestTimeout is the timeout of requests whose context no rule limits (patience.IsLimited); 0 means 60 s.
	RequestTimeout time.Duration
	// MaxPages, MaxItems and MaxBytes limit a list with all its pages; 0 means 1,000, 20,000 and 256 MiB.
	MaxPages, MaxItems, MaxBytes int
	// Trace is called with each message, before it is sent or as it was received. It must not block, and must not
	// keep or change the body. It may be nil.
	Trace  func(sent bool, body []byte)
	Logger *slog.Logger // if nil, nothing is logged
}

func (c ClientConfig) withDefaults() ClientConfig {
	c.Name = cmp.Or(c.Name, "tenon")
	c.Version = cmp.Or(c.Version, "0")
	if c.DiscoverTimeout <= 0 {
		c.DiscoverTimeout = 1500 * time.Millisecond
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = time.Minute
	}
	if c.MaxPages <= 0 {
		c.MaxPages = 1000
	}
	if c.MaxItems <= 0 {
		c.MaxItems = 20_000
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 256 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Info is the server's information about itself.
type Info struct {
	Protocol     string          // the revision in use
	Name         string          // only for display: a server may send any name
	Version      string          //
	Instructions string          //
	Capabilities json.RawMessage // an object
	Steps        []Step          // of connecting
}

// IsModern reports whether the connection uses the modern era.
func (i Info) IsModern() bool { return i.Protocol == Modern }

// Has reports whether the server declares a capability, such as "tools".
func (i Info) Has(capability string) bool { return rawjson.Field(i.Capabilities, capability) != nil }

// Client is a connection to an MCP server. It is safe for concurrent use.
type Client struct {
	cfg    ClientConfig
	stream Stream
	peer   *jsonrpc.Peer
	http   *transport.HTTP // nil over a stream
	info   atomic.Pointer[Info]
	meta   []byte // the members of _meta of every request in the modern era
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once

	tokens   atomic.Int64
	progress sync.Map // token → func(tenon.Progress)
	calls    openCalls
	params   atomic.Pointer[map[string][]mirrored] // keyed by tool: arguments that are also sent as headers
	changed  debounce
	called   atomic.Bool // a tool was called before the subscription was confirmed
	tasks    taskNotices
	watches  watches
	roots    atomic.Pointer[[]Root] // set by SetRoots; if nil, Answers.Roots
	fresh    hints
	// tasked contains the tools that must be called with a task (2025-11-25); it is nil until they have been listed.
	tasked  atomic.Pointer[map[string]bool]
	opened  <-chan struct{} // closed when the notification stream of a legacy session is open; nil if there is none
	renew   sync.Mutex      // one new session at a time
	renewed chan struct{}   // receives a value after a new session; nil over a stream
}

// Info returns the information that the server sent when it was connected.
func (c *Client) Info() Info { return *c.info.Load() }

func (c *Client) isModern() bool { return c.info.Load().IsModern() }

// isPlain reports whether the server only supports plain JSON-RPC with tools, and nothing else of MCP.
func (c *Client) isPlain() bool { return c.http != nil && c.http.IsPlain() }

// Done is closed when the connection is lost or closed.
func (c *Client) Done() <-chan struct{} { return c.peer.Done() }

// AfterEnd runs f in a new goroutine once Done is closed. stop reports whether it prevented that.
func (c *Client) AfterEnd(f func()) (stop func() bool) { return c.peer.AfterEnd(f) }

// Err returns the reason why the connection ended, or nil if it has not ended.
func (c *Client) Err() error { return c.peer.Err() }

// Close ends the connection, and the server's process if there is one. It returns when all goroutines have ended.
func (c *Client) Close() error {
	var err error
	c.once.Do(func() {
		c.cancel()
		c.peer.Close(errors.New("the connection was closed"))
		err = c.stream.Close()
	})
	c.wg.Wait()
	c.changed.stop()
	return err
}

// attach creates a client on a stream and begins to read.
func attach(cfg ClientConfig, s Stream) *Client {
	c := &Client{cfg: cfg, stream: s}
	c.info.Store(&Info{})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.http, _ = s.(*transport.HTTP); c.http != nil {
		c.renewed = make(chan struct{}, 1)
	}
	c.changed.f, c.watches.turn = cfg.Changed, make(chan struct{}, 1)
	c.peer = jsonrpc.New(s, jsonrpc.Config{Handle: c.handle, NoticeVia: c.notice, Abandoned: c.abandoned,
		Trace: cfg.Trace, Logger: cfg.Logger})
	c.wg.Go(func() { _ = c.peer.Run(c.ctx) }) // Err says why it ended
	return c
}

// request sends a request and returns its raw result. params contains the members of its params except _meta. about
// names the tool, prompt or resource; it may be empty.
func (c *Client) request(ctx context.Context, method string, params []byte, about string) ([]byte, error) {
	return c.ask(ctx, method, params, nil, about, nil, nil)
}

// ask is request for a call during which the server may ask questions. If answer is nil, they are refused.
func (c *Client) ask(ctx context.Context, method string, params, extra []byte, about string, headers map[string]string,
	answer func(context.Context, string, json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	timeout := c.cfg.RequestTimeout
	if patience.IsLimited(ctx) { // the rules of the tool set a timeout, which replaces the server's
		timeout = 0
	}
	own, limit := patience.WithTimeout(ctx, timeout)
	defer limit.Stop()
	var call *openCall
	if answer != nil {
		call = &openCall{ctx: own, ask: answer, limit: limit, caller: CallerOf(ctx),
			aside: method != "tools/call" && method != "tasks/result"}
	}
	result, err := c.send(own, method, params, extra, about, headers, call)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && limit.IsExpired() {
		err = &slowError{limit.Length()}
	}
	return result, err
}

// slowError is the error of a request that was not answered in time.
type slowError struct{ after time.Duration }

func (e *slowError) Error() string   { return fmt.Sprintf("no answer within %s", e.after) }
func (*slowError) Is(err error) bool { return err == context.DeadlineExceeded }

// send is request without a timeout.
func (c *Client) send(ctx context.Context, method string, params, extra []byte, about string, headers map[string]string,
	call *openCall) ([]byte, error) {
	meta := c.metaFor(CallerOf(ctx))
	for again := false; ; again = true {
		body := jsonrpc.Body()
		out := jsonrpc.Outgoing{ID: c.peer.NextID(), Method: method, Name: about, Header: headers}
		*body = c.appendRequest((*body)[:0], out.ID, method, params, extra, meta)
		out.Body = *body
		if call != nil {
			out.Patient = call.limit.IsPaused
			c.calls.add(out.ID, call)
		}
		session := ""
		if c.http != nil {
			session = c.http.Session()
		}
		result, err := c.peer.Call(ctx, out)
		jsonrpc.PutBody(body)
		if call != nil {
			c.calls.remove(out.ID)
		}
		if again || !errors.Is(err, transport.ErrSession) {
			return result, err
		}
		// The request was refused and not carried out: repeat it in a new session.
		if err := c.reinitialize(ctx, session); err != nil {
			return nil, err
		}
	}
}

// appendRequest writes the envelope, the params and their _meta.
func (c *Client) appendRequest(b []byte, id int64, method string, params, extra, meta []byte) []byte {
	if c.isPlain() {
		extra = nil
	}
	if len(params) == 0 && len(extra) == 0 && len(meta) == 0 {
		return jsonrpc.AppendRequest(b, id, method, nil)
	}
	p := make([]byte, 0, len(params)+len(extra)+len(meta)+16)
	p = append(p, '{')
	p = append(p, params...)
	if len(extra) > 0 || len(meta) > 0 {
		if len(params) > 0 {
			p = append(p, ',')
		}
		p = append(p, `"_meta":{`...)
		p = append(p, meta...)
		if len(extra) > 0 && len(meta) > 0 {
			p = append(p, ',')
		}
		p = append(append(p, extra...), '}')
	}
	return jsonrpc.AppendRequest(b, id, method, append(p, '}'))
}

// abandoned notifies the server that a caller has given up a request. It does not for a request that opens the
// connection. Over modern HTTP, closing the stream, which has already happened, is the notification.
func (c *Client) abandoned(id int64, cause error) {
	opening := c.info.Load().Protocol == "" && !c.isPlain()
	if opening || c.http != nil && c.isModern() || c.ctx.Err() != nil {
		return
	}
	reason := "the caller gave up"
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = "timeout"
	}
	params := text(member([]byte{'{'}, "requestId", strconv.AppendInt(nil, id, 10)), "reason", reason)
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
		defer cancel()
		_ = c.peer.Notify(ctx, "notifications/cancelled", append(params, '}')) // the server need not act on it
	})
}

// handle answers a request of the server.
func (c *Client) handle(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	if r.Method == "ping" {
		return []byte("{}"), nil
	}
	if c.isModern() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
	}
	return c.answerServer(ctx, r)
}

// Settle calls Changed at once for the lists whose changes the server has reported. Otherwise Changed is called a
// moment later, together with further changes. Settle is for a caller that is about to use a list: servers report a
// change before the result of the call that caused it.
func (c *Client) Settle() { c.changed.settle() }

// notice handles a notification of the server. The reader calls it.
func (c *Client) notice(via int64, method string, params []byte) {
	if list, ok := strings.CutSuffix(strings.TrimPrefix(method, "notifications/"), "/list_changed"); ok {
		c.changed.call(list)
		return
	}
	switch method {
	case "notifications/subscriptions/acknowledged":
		if !c.tasks.opened(params) && !c.watches.opened(params) { // these do not concern the lists
			c.healthy(nil)
			c.missed(params)
		}
	case "notifications/tasks", "notifications/tasks/status":
		if c.admits(method) {
			c.tasks.told(params)
		}
		return
	case "notifications/resources/updated":
		if c.admits(method) {
			c.watches.told(params)
		}
	case "notifications/progress":
		c.onProgress(method, params)
		return
	case "notifications/message":
		if call := c.calls.only(via); call != nil && c.admits(method) {
			call.logs(params)
		}
	case "notifications/cancelled": // the server withdraws a question
		if id := rawjson.Field(params, "requestId"); id != nil && !c.isModern() {
			c.peer.CancelRequest(id)
		}
		return
	}
	if c.cfg.Notice != nil {
		c.cfg.Notice(method, params)
	}
}

func (c *Client) admits(method string) bool { return c.cfg.Admits == nil || c.cfg.Admits(method) }

// maxProgress is the maximum length of the text of a progress notification, in bytes.
const maxProgress = 1000

func (c *Client) onProgress(method string, params []byte) {
	f, ok := c.progress.Load(string(rawjson.Field(params, "progressToken")))
	if !ok || !c.admits(method) {
		return // its call has ended or is unknown, or there are too many
	}
	var p tenon.Progress
	if json.Unmarshal(params, &p) == nil {
		if len(p.Message) > maxProgress {
			p.Message = strings.ToValidUTF8(p.Message[:maxProgress], "") + "…"
		}
		f.(func(tenon.Progress))(p)
	}
}

// debounce calls f once for any number of changes within 100 ms. If a list changes all the time, f is called less
// often, but never misses the last change.
type debounce struct {
	f    func(string)
	mu   sync.Mutex
	on   map[string]*time.Timer
	told int       // calls in the recent past
	last time.Time // time of the last call of f
}

const (
	changedAfter = 100 * time.Millisecond
	changedPause = 2 * time.Second // between two calls, after the first ones
	changedBurst = 10              // calls with the usual pause
	changedCalm  = 20 * time.Second
)

// pause returns how long the next call has to wait. The caller holds the lock.
func (d *debounce) pause() time.Duration {
	now := time.Now()
	if now.Sub(d.last) > changedCalm {
		d.told = 0
	}
	d.told, d.last = d.told+1, now
	if d.told > changedBurst {
		return changedPause
	}
	return changedAfter
}

func (d *debounce) call(list string) {
	if d.f == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on == nil {
		d.on = map[string]*time.Timer{}
	}
	if len(d.on) > 8 || d.on[list] != nil {
		return // a call of f is already pending; a server has three lists
	}
	d.on[list] = time.AfterFunc(d.pause(), func() {
		d.mu.Lock()
		delete(d.on, list)
		d.mu.Unlock()
		d.f(list)
	})
}

// settle makes the pending calls at once, without waiting for the rest of their pause.
func (d *debounce) settle() {
	var due []string
	d.mu.Lock()
	for list, t := range d.on {
		if t.Stop() { // otherwise the call has begun
			due = append(due, list)
			delete(d.on, list)
		}
	}
	d.mu.Unlock()
	for _, list := range due {
		d.f(list)
	}
}

func (d *debounce) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.on {
		t.Stop()
	}
}
