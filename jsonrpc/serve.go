package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// Body returns a pooled buffer for a message. Return it with [PutBody].
func Body() *[]byte { return bodies.Get().(*[]byte) }

// PutBody returns a buffer to the pool. Large buffers are left to the garbage collector.
func PutBody(b *[]byte) {
	if cap(*b) <= 64<<10 {
		*b = (*b)[:0]
		bodies.Put(b)
	}
}

// serve handles a request in a new goroutine, or directly if it is quick, and sends the response.
func (p *Peer) serve(r *Request) {
	ctx, free, err := p.begin(p.ctx, r)
	if err != nil {
		p.refused.Add(1)
		return
	}
	if p.cfg.Quick != nil && p.cfg.Quick(r) {
		p.reply(ctx, free, r)
		return
	}
	p.serving.Go(func() { p.reply(ctx, free, r) })
}

// errCancelled is the cause of the end of a request's context if the other side cancelled the request.
var errCancelled = errors.New("the request was cancelled")

// reply handles a registered request and sends the response. A request that the other side cancelled gets none (MCP,
// cancellation).
func (p *Peer) reply(ctx context.Context, free func(), r *Request) {
	defer free()
	body := Body()
	defer PutBody(body)
	*body = p.answer(ctx, *body, r)
	if context.Cause(ctx) == errCancelled {
		p.log.Debug("a cancelled request gets no response", "method", r.Method)
		return
	}
	defer p.replying(r)()
	if err := p.send(p.ctx, Outgoing{Body: *body}); err != nil && p.ctx.Err() == nil {
		p.log.Debug("response not sent", "method", r.Method, "error", err.Error())
	}
}

// refuse answers a request that was skipped. Otherwise the other side would wait for the response forever (JSON-RPC
// 2.0, section 5.1).
func (p *Peer) refuse(b []byte, cause error) {
	id := scanRequest(b)
	if id == nil {
		return
	}
	r := &Request{ID: id}
	ctx, free, err := p.begin(p.ctx, r)
	if err != nil {
		p.refused.Add(1)
		return
	}
	p.serving.Go(func() {
		defer free()
		body := AppendError(nil, id, Errorf(CodeInvalidRequest, "the request cannot be read: %s", cause))
		if err := p.send(ctx, Outgoing{Body: body}); err != nil && p.ctx.Err() == nil {
			p.log.Debug("response not sent", "error", err.Error())
		}
	})
}

// Serve handles a request in the caller's goroutine and appends the response to b. It is for listeners that
// send each response themselves.
func (p *Peer) Serve(ctx context.Context, b []byte, r *Request) []byte {
	ctx, free, refusal := p.begin(ctx, r)
	if refusal != nil {
		p.refused.Add(1)
		return AppendError(b, r.ID, refusal)
	}
	defer free()
	return p.answer(ctx, b, r)
}

// begin registers a request until free is called. It refuses the id of a request that is still being handled.
func (p *Peer) begin(parent context.Context, r *Request) (ctx context.Context, free func(), refusal *Error) {
	id := string(r.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, taken := p.inbound[id]
	switch {
	case taken:
		return nil, nil, Errorf(CodeInvalidRequest, "the id belongs to a request that is still being handled; "+
			"use a new id for each request")
	case p.err != nil:
		return nil, nil, Errorf(CodeInternal, "the connection is closed")
	case len(p.inbound)+p.sending >= p.cfg.MaxRequests:
		return nil, nil, Errorf(CodeInternal, "too many concurrent requests")
	}
	ctx, cancel := context.WithCancelCause(parent)
	mine := &inbound{cancel}
	p.inbound[id] = mine
	return ctx, func() {
		cancel(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.inbound[id] == mine {
			delete(p.inbound, id)
		}
	}, nil
}

// inbound is a request from the other side that is being handled.
type inbound struct{ cancel context.CancelCauseFunc }

// replying releases the id of a request before its response is sent, because the other side can use the id again as
// soon as it has the response. Until sent is called, the request still counts as one of MaxRequests.
func (p *Peer) replying(r *Request) (sent func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inbound, string(r.ID))
	p.sending++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sending--
	}
}

func (p *Peer) answer(ctx context.Context, b []byte, r *Request) []byte {
	if p.cfg.Handle == nil {
		return AppendError(b, r.ID, Errorf(CodeMethodNotFound, "method not found: %s", r.Method))
	}
	result, err := p.handle(ctx, r)
	var e *Error
	switch {
	case err == nil:
		return AppendResult(b, r.ID, result)
	case !errors.As(err, &e):
		e = Errorf(CodeInternal, "%s", err.Error())
	}
	return AppendError(b, r.ID, e)
}

// handle calls the handler and turns a panic into an error, so that a defect does not end the process.
func (p *Peer) handle(ctx context.Context, r *Request) (result []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("a request handler panicked", "method", r.Method, "panic", fmt.Sprint(v))
			result, err = nil, Errorf(CodeInternal, "internal error")
		}
	}()
	return p.cfg.Handle(ctx, r)
}

// CancelRequest cancels the context of a running request from the other side, which then gets no response. It reports
// false if no request has this id.
func (p *Peer) CancelRequest(id []byte) bool {
	p.mu.Lock()
	running := p.inbound[string(id)]
	p.mu.Unlock()
	if running != nil {
		running.cancel(errCancelled)
	}
	return running != nil
}
