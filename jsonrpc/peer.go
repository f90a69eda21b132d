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

// Outgoing is one message on its way out, with what a transport may want to
// know without looking into it.
type Outgoing struct {
	Body   []byte // the stream must not keep or change it
	ID     int64  // of a request of ours, else 0
	Method string // of a request or notice, else ""
	Name   string // what the request is about (tool, prompt, resource), "" for none
	Header map[string]string
	// Patient reports that the silence of the other side is ours to break: it waits
	// for an answer. Nil: never.
	Patient func() bool
}

// Stream carries messages both ways.
type Stream interface {
	// Send takes a message over. It may be called from any goroutine. It returns
	// an error if the message was certainly not sent, a *LostError if that is not
	// certain, or the context's error.
	Send(ctx context.Context, m Outgoing) error
	// Recv returns the next message, which then belongs to the caller. A
	// *SizeError means that one message was skipped; any other error is the end.
	Recv(ctx context.Context) ([]byte, error)
}

// Exchanger is a stream that answers each request by itself, such as HTTP. A
// call then runs in its caller's goroutine.
type Exchanger interface {
	// Exchange sends a request and gives what comes for it to deliver, until
	// deliver reports that it was the answer. Where no answer came, the error
	// is a *LostError, an *Error of the peer, or another that says why.
	Exchange(ctx context.Context, m Outgoing, deliver func(message []byte) (answered bool)) error
}

// Request is a request of the other side.
type Request struct {
	ID     []byte // raw; goes back byte for byte
	Method string
	Params []byte // raw
	Via    int64  // the call of ours whose exchange it came with, see [Exchanger]; 0: none
}

// Config holds the hooks of a [Peer]. All are optional.
type Config struct {
	// Handle answers a request of the other side. Its context ends with the
	// peer, or by CancelRequest. Errors other than *Error become -32603.
	// Nil: all are refused with -32601.
	Handle func(ctx context.Context, r *Request) (result []byte, err error)
	// Quick reports whether a request is answered without waiting for anything. It
	// is then handled by the reader itself, which saves the hop to a goroutine.
	// Nil: none is.
	Quick func(r *Request) bool
	// Notice takes a notice. It is called from the reader and must not block.
	Notice func(method string, params []byte)
	// Abandoned is called when a caller gives up a call that was, or may have been, sent. It must
	// not block for long.
	Abandoned func(id int64, cause error)
	// Trace is told of each message, before it is sent and as it has come. It must not
	// block, nor keep or change the body. Nil: nobody is.
	Trace func(sent bool, body []byte)
	// Logger gets what is skipped; nil discards.
	Logger *slog.Logger
	// MaxRequests bounds the requests of the other side that are under way;
	// those over it are dropped. 0: 256.
	MaxRequests int
	// MaxGarbage ends the peer after so many unreadable messages in a row.
	// 0: 10,000.
	MaxGarbage int
}

// Stats counts what a peer dropped.
type Stats struct {
	Late    int64 // answers to calls that are not open
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
	bad                    atomic.Int64 // unreadable messages in a row
	skips                  skips

	pendings sync.Pool // of *pending; the peer's own, since a channel may belong to a bubble of synctest

	mu      sync.Mutex
	open    map[int64]*pending
	inbound map[string]context.CancelFunc
	err     error
	ctx     context.Context // of what is under way; ends with the peer, after err was set
	end     context.CancelFunc
	serving sync.WaitGroup
}

type pending struct {
	answer chan answer
	then   func(error) // of Hold, in place of answer
}

type answer struct {
	result []byte
	err    error
}

// New returns a peer on the stream. Unless the stream is an [Exchanger], Run
// must be called for anything to come in.
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
		open: make(map[int64]*pending), inbound: make(map[string]context.CancelFunc)}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// NextID returns an id for a call: 1, 2, 3 …
func (p *Peer) NextID() int64 { return p.last.Add(1) }

// Done is closed when the peer has ended.
func (p *Peer) Done() <-chan struct{} { return p.ctx.Done() }

// Err returns why the peer ended, nil while it has not.
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

// Run reads until the stream or the context ends, or Close is called, and
// returns why. It waits for the handlers of requests.
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
			err = fmt.Errorf("%d messages in a row could not be read", p.cfg.MaxGarbage)
			break
		}
	}
	p.skips.end(p.log)
	p.fail(err)
	p.serving.Wait()
	return p.Err()
}

// Close ends the peer: open calls fail with the cause, handlers are cancelled.
// It does not close the stream.
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

// Call sends the request m, whose ID came from NextID, and returns the raw
// result. The error is an *Error that the peer answered with, a *LostError, a
// *SizeError, one that wraps [ErrSyntax] for an unreadable answer, or the
// context's.
func (p *Peer) Call(ctx context.Context, m Outgoing) ([]byte, error) {
	if err := ctx.Err(); err != nil { // else it would be sent, and then taken back
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
			if errors.As(err, &lost) { // it knows whether the message got there
				return nil, err
			}
			return nil, &LostError{Err: err}
		}
		if ctx.Err() != nil {
			if forgot && p.cfg.Abandoned != nil { // it may have been on its way
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
		case a := <-w.answer: // it came before the end
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
		a := <-w.answer // it is being delivered
		return a.result, a.err
	}
	if ctx.Err() != nil {
		if p.cfg.Abandoned != nil {
			p.cfg.Abandoned(m.ID, context.Cause(ctx))
		}
		return nil, ctx.Err()
	}
	if err == nil {
		err = &LostError{Sent: true, Err: errors.New("the answer ended without a result")}
	}
	return nil, err
}

// forget closes a call. It reports false if the answer was faster.
func (p *Peer) forget(id int64, w *pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id] != w {
		return false
	}
	delete(p.open, id)
	return true
}

// Notify sends a notice. Params is raw, or empty for none.
func (p *Peer) Notify(ctx context.Context, method string, params []byte) error {
	return p.send(ctx, Outgoing{Body: AppendRequest(nil, 0, method, params), Method: method})
}

// Deliver takes one message in, as if it had been received. It does not block.
func (p *Peer) Deliver(b []byte) { p.deliver(b, 0) }

// deliver takes a message that came with the exchange of a call of ours, 0 for
// none.
func (p *Peer) deliver(b []byte, via int64) {
	p.trace(false, b)
	var m Message
	err := Parse(b, &m)
	if err != nil {
		if all, _ := split(b); all != nil {
			for _, one := range all {
				if err := Parse(one, &m); err != nil {
					p.unreadable(one, err)
				} else {
					p.take(&m, via)
				}
			}
			return
		}
		p.unreadable(b, err)
		return
	}
	p.bad.Store(0)
	p.skips.end(p.log)
	p.take(&m, via)
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
			p.log.Debug("dropped an answer to no open call", "id", clip(m.ID))
		} else if m.ID[0] == '"' {
			p.log.Debug("took a string for the integer id that was sent", "id", id)
		}
	case m.IsRequest():
		p.serve(&Request{ID: m.ID, Method: m.Method, Params: m.Params, Via: via})
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

// unreadable skips a message, failing the call that it names.
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

// oversize fails the call that a message over its limit would have answered.
func (p *Peer) oversize(e *SizeError) {
	raw, method := scanEnvelope(e.Prefix)
	id, ok := ownID(raw)
	switch {
	case method: // it answers nothing
		id = 0
	case !ok:
		id = p.only()
	}
	if !p.resolve(id, answer{err: e}) {
		p.skips.add(p.log, "over the limit", "limit", e.Limit, "message", clip(e.Prefix))
		p.refuse(e.Prefix, e)
	}
}

// only returns the one call that is open, beside those that are held, 0 where there are
// none or several.
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

// clip makes bytes of a peer safe and short enough for a log.
func clip(b []byte) string {
	const most = 200
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}
