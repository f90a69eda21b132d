package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
)

// Outgoing is one outgoing message. Its metadata makes it unnecessary for transports to parse the body.
type Outgoing struct {
	Body   []byte // the stream must neither retain nor modify it
	ID     int64  // id of an outgoing request, otherwise 0
	Method string // method of a request or notification, otherwise ""
	Name   string // name of the requested tool, prompt or resource, or ""
	Header map[string]string
	// Patient reports whether the other side is waiting for us, for example for the response to an elicitation. A
	// transport must not treat silence as a timeout in this case. If nil, the other side never waits for us.
	Patient func() bool
}

// Stream carries messages in both directions.
type Stream interface {
	// Send takes over a message. It may be called from any goroutine. If it is uncertain whether the message was sent,
	// the error is a *LostError. If the message was certainly not sent, it is the context's error or any other error.
	Send(ctx context.Context, m Outgoing) error
	// Recv returns the next message, which then belongs to the caller. A *SizeError means that one message
	// was skipped. Any other error ends the stream.
	Recv(ctx context.Context) ([]byte, error)
}

// Exchanger is a stream, such as HTTP, on which the exchange of a request also returns its response. A call then runs
// in its caller's goroutine.
type Exchanger interface {
	// Exchange sends a request and passes each received message to deliver, until deliver reports that the
	// call was answered. If no response arrived, the error is a *LostError, an *Error of the peer, or another
	// error that states the reason.
	Exchange(ctx context.Context, m Outgoing, deliver func(message []byte) (answered bool)) error
}

// Request is a request from the other side.
type Request struct {
	ID     []byte // raw; the response repeats it byte for byte
	Method string
	Params []byte // raw
	Via    int64  // id of the outgoing call whose exchange delivered it (see [Exchanger]), or 0
}

// Config holds the hooks of a [Peer]. All are optional.
type Config struct {
	// Handle answers a request from the other side. Its context ends with the peer or with CancelRequest.
	// Errors other than *Error are sent with code -32603. If nil, every request is refused with -32601.
	Handle func(ctx context.Context, r *Request) (result []byte, err error)
	// Quick reports whether a request can be answered without blocking. The reader then handles it without
	// starting a goroutine. If nil, no request is quick.
	Quick func(r *Request) bool
	// Notice handles a notification. It is called from the reader and must not block.
	Notice func(method string, params []byte)
	// NoticeVia replaces Notice for a peer that distinguishes the outgoing calls whose exchanges delivered
	// notifications; see [Request.Via].
	NoticeVia func(via int64, method string, params []byte)
	// Abandoned is called when a caller gives up a call that was sent, or may have been sent. It must return quickly.
	Abandoned func(id int64, cause error)
	// Trace is called with each message, before it is sent and after it is received. It must not block, and
	// must neither retain nor modify the body. It may be nil.
	Trace func(sent bool, body []byte)
	// Logger logs skipped messages. If nil, nothing is logged.
	Logger *slog.Logger
	// MaxRequests bounds the concurrent requests from the other side. Further requests are dropped. 0 means 256.
	MaxRequests int
	// MaxGarbage is the number of consecutive unreadable messages that ends the peer. 0 means 10,000.
	MaxGarbage int
}

// Stats counts the messages that a peer dropped.
type Stats struct {
	Late    int64 // responses to calls that are not open
	Garbage int64 // messages that could not be read
	Refused int64 // requests over MaxRequests
}

// Peer is one end of a connection. It is safe for concurrent use.
type Peer struct {
	cfg    Config
	stream Stream
	log    *slog.Logger

	last                   atomic.Int64
	late, garbage, refused atomic.Int64
	bad                    atomic.Int64 // consecutive unreadable messages
	skips                  skips

	// pendings pools *pending. It belongs to the peer because a channel may belong to a synctest bubble.
	pendings sync.Pool

	mu      sync.Mutex
	open    map[int64]*pending
	inbound map[string]*inbound
	sending int // responses being sent
	err     error
	ctx     context.Context // context of running requests; cancelled after err is set
	end     context.CancelFunc
	serving sync.WaitGroup
}

type pending struct {
	answer chan answer
	then   func(error) // set by Hold; replaces answer
}

type answer struct {
	result []byte
	err    error
}

// New returns a peer on the stream. Unless the stream is an [Exchanger], call Run to receive messages.
func New(s Stream, cfg Config) *Peer {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxRequests <= 0 {
		cfg.MaxRequests = 256
	}
	if cfg.MaxGarbage <= 0 {
		cfg.MaxGarbage = 10_000
	}
	p := &Peer{cfg: cfg, stream: s, log: cfg.Logger,
		open: make(map[int64]*pending), inbound: make(map[string]*inbound)}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// NextID returns an id for a call: 1, 2, 3 …
func (p *Peer) NextID() int64 { return p.last.Add(1) }

// Done is closed when the peer has ended.
func (p *Peer) Done() <-chan struct{} { return p.ctx.Done() }

// Err returns the reason why the peer ended, or nil while it is running.
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Stats returns the counts so far.
func (p *Peer) Stats() Stats {
	return Stats{Late: p.late.Load(), Garbage: p.garbage.Load(), Refused: p.refused.Load()}
}

// InFlight returns the number of open calls.
func (p *Peer) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// Run reads until the stream or the context ends, or Close is called, and returns the reason. It waits for
// running request handlers.
func (p *Peer) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.fail(ctx.Err()) })
	defer stop()
	var err error
	for {
		var b []byte
		if b, err = p.stream.Recv(p.ctx); err != nil {
			var size *SizeError
			if errors.As(err, &size) {
				p.oversize(size)
				continue
			}
			break
		}
		p.Deliver(b)
		if p.bad.Load() >= int64(p.cfg.MaxGarbage) {
			err = fmt.Errorf("%d consecutive messages could not be read", p.cfg.MaxGarbage)
			break
		}
	}
	p.skips.end(p.log)
	p.fail(err)
	p.serving.Wait()
	return p.Err()
}

// Close ends the peer with the given cause. Open calls fail and handlers are cancelled. It does not close the
// stream.
func (p *Peer) Close(cause error) { p.fail(cause) }

func (p *Peer) fail(cause error) {
	if cause == nil {
		cause = io.EOF
	}
	p.mu.Lock()
	if p.err == nil {
		p.err = cause
	}
	p.mu.Unlock()
	p.end()
}

// Call sends the request m, whose ID came from NextID, and returns the raw result. The error is an *Error
// from the peer, a *LostError, a *SizeError, an error that wraps [ErrSyntax] for an unreadable response, or
// the context's error.
func (p *Peer) Call(ctx context.Context, m Outgoing) ([]byte, error) {
	if err := ctx.Err(); err != nil { // avoids sending and then cancelling the request
		return nil, err
	}
	w, _ := p.pendings.Get().(*pending)
	if w == nil {
		w = &pending{answer: make(chan answer, 1)}
	}
	p.mu.Lock()
	if p.err != nil {
		err := p.err
		p.mu.Unlock()
		return nil, &LostError{Err: err}
	}
	p.open[m.ID] = w
	p.mu.Unlock()
	if x, ok := p.stream.(Exchanger); ok {
		p.trace(true, m.Body)
		return p.exchange(ctx, x, m, w)
	}
	if err := p.send(ctx, m); err != nil {
		forgot := p.forget(m.ID, w)
		if forgot && ctx.Err() == nil {
			var lost *LostError
			if errors.As(err, &lost) { // the stream knows whether the message arrived
				return nil, err
			}
			return nil, &LostError{Err: err}
		}
		if ctx.Err() != nil {
			if forgot && p.cfg.Abandoned != nil { // the message may have been sent
				p.cfg.Abandoned(m.ID, context.Cause(ctx))
			}
			return nil, ctx.Err()
		}
	}
	select {
	case a := <-w.answer:
		p.pendings.Put(w)
		return a.result, a.err
	case <-ctx.Done():
		if p.forget(m.ID, w) && p.cfg.Abandoned != nil {
			p.cfg.Abandoned(m.ID, context.Cause(ctx))
		}
		return nil, ctx.Err()
	case <-p.ctx.Done():
		select {
		case a := <-w.answer: // it arrived before the end
			return a.result, a.err
		default:
		}
		p.forget(m.ID, w)
		return nil, &LostError{Sent: true, Err: p.Err()}
	}
}

// send hands a message to the stream.
func (p *Peer) send(ctx context.Context, m Outgoing) error {
	p.trace(true, m.Body)
	return p.stream.Send(ctx, m)
}

func (p *Peer) trace(sent bool, body []byte) {
	if p.cfg.Trace != nil {
		p.cfg.Trace(sent, body)
	}
}

func (p *Peer) exchange(ctx context.Context, x Exchanger, m Outgoing, w *pending) ([]byte, error) {
	err := x.Exchange(ctx, m, func(b []byte) bool {
		p.deliver(b, m.ID)
		return len(w.answer) > 0
	})
	select {
	case a := <-w.answer:
		p.pendings.Put(w)
		return a.result, a.err
	default:
	}
	if !p.forget(m.ID, w) {
		a := <-w.answer // delivery is in progress
		return a.result, a.err
	}
	if ctx.Err() != nil {
		if p.cfg.Abandoned != nil {
			p.cfg.Abandoned(m.ID, context.Cause(ctx))
		}
		return nil, ctx.Err()
	}
	if err == nil {
		err = &LostError{Sent: true, Err: errors.New("the exchange ended without a response")}
	}
	return nil, err
}

// forget removes an open call. It reports false if the response arrived first.
func (p *Peer) forget(id int64, w *pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id] != w {
		return false
	}
	delete(p.open, id)
	return true
}

// Notify sends a notification. Params is raw, or empty for none.
func (p *Peer) Notify(ctx context.Context, method string, params []byte) error {
	return p.send(ctx, Outgoing{Body: AppendRequest(nil, 0, method, params), Method: method})
}

// Deliver handles one message as if it had been received. It does not block.
func (p *Peer) Deliver(b []byte) { p.deliver(b, 0) }

// deliver handles a message. Via is the id of the outgoing call whose exchange delivered it, or 0.
func (p *Peer) deliver(b []byte, via int64) {
	p.trace(false, b)
	var m Message
	err := Parse(b, &m)
	if err != nil {
		if !Batch(b, func(one []byte, over bool) { p.deliverOne(one, over, via) }) {
			p.unreadable(b, err)
		}
		return
	}
	p.readable()
	p.take(&m, via)
}

// deliverOne handles a message of a batch.
func (p *Peer) deliverOne(b []byte, over bool, via int64) {
	var m Message
	err := Parse(b, &m)
	if over {
		err = ErrBatch
	}
	if err != nil {
		p.unreadable(b, err)
		return
	}
	p.readable()
	p.take(&m, via)
}

// readable ends a series of unreadable messages.
func (p *Peer) readable() {
	p.bad.Store(0)
	p.skips.end(p.log)
}

func (p *Peer) take(m *Message, via int64) {
	switch {
	case m.IsAnswer():
		a := answer{result: m.Result}
		if m.Error != nil {
			a.err = ParseError(m.Error)
		}
		id, ok := ownID(m.ID)
		if !ok || !p.resolve(id, a) {
			p.late.Add(1)
			p.log.Debug("dropped a response that matches no open call", "id", clip(m.ID))
		} else if m.ID[0] == '"' {
			p.log.Debug("accepted a string in place of the integer id that was sent", "id", id)
		}
	case m.IsRequest():
		p.serve(&Request{ID: m.ID, Method: m.Method, Params: m.Params, Via: via})
	case p.cfg.NoticeVia != nil:
		p.cfg.NoticeVia(via, m.Method, m.Params)
	case p.cfg.Notice != nil:
		p.cfg.Notice(m.Method, m.Params)
	}
}

func (p *Peer) resolve(id int64, a answer) bool {
	p.mu.Lock()
	w := p.open[id]
	delete(p.open, id)
	p.mu.Unlock()
	if w == nil {
		return false
	}
	if w.then != nil {
		go w.then(a.err)
		return true
	}
	w.answer <- a
	return true
}

// unreadable skips a message. If the message contains the id of a call, it fails that call.
func (p *Peer) unreadable(b []byte, err error) {
	if len(trim(b)) == 0 {
		return
	}
	p.garbage.Add(1)
	p.bad.Add(1)
	if id, ok := ScanID(b); ok && p.resolve(id, answer{err: fmt.Errorf("the answer cannot be read: %w", err)}) {
		return
	}
	p.skips.add(p.log, "that cannot be read", "reason", err.Error(), "message", clip(b))
	p.refuse(b, err)
}

// oversize fails the call whose response the oversized message was.
func (p *Peer) oversize(e *SizeError) {
	raw, method := scanEnvelope(e.Prefix)
	id, ok := ownID(raw)
	switch {
	case method: // it is not a response
		id = 0
	case !ok:
		id = p.only()
	}
	if !p.resolve(id, answer{err: e}) {
		p.skips.add(p.log, "over the limit", "limit", e.Limit, "message", clip(e.Prefix))
		p.refuse(e.Prefix, e)
	}
}

// only returns the id of the one open call, not counting calls made with Hold. It returns 0 if there is none
// or more than one.
func (p *Peer) only() (id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for open, w := range p.open {
		switch {
		case w.then != nil:
		case id != 0:
			return 0
		default:
			id = open
		}
	}
	return id
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// clip quotes and shortens bytes received from a peer for use in a log.
func clip(b []byte) string {
	const most = 200
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}
