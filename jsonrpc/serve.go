package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// Body lends a buffer for a message. Give it back with [PutBody].
func Body() *[]byte { return bodies.Get().(*[]byte) }

// PutBody takes a buffer back. Large ones are left to the collector.
func PutBody(b *[]byte) {
	if cap(*b) <= 64<<10 {
		*b = (*b)[:0]
		bodies.Put(b)
	}
}

// serve handles a request in a goroutine of its own and sends the answer.
func (p *Peer) serve(r *Request) {
	ctx, free, ok := p.begin(p.ctx, r)
	if !ok {
		p.refused.Add(1)
		return
	}
	if p.cfg.Quick != nil && p.cfg.Quick(r) {
		p.reply(ctx, free, r)
		return
	}
	p.serving.Go(func() { p.reply(ctx, free, r) })
}

// reply handles a request that has begun and sends the answer.
func (p *Peer) reply(ctx context.Context, free func(), r *Request) {
	defer free()
	body := Body()
	defer PutBody(body)
	*body = p.answer(ctx, *body, r)
	if err := p.send(p.ctx, Outgoing{Body: *body}); err != nil && p.ctx.Err() == nil {
		p.log.Debug("an answer was not sent", "method", r.Method, "error", err.Error())
	}
}

// refuse answers a request that was skipped, so that the other side does not wait
// for ever (JSON-RPC 2.0, section 5.1).
func (p *Peer) refuse(b []byte, cause error) {
	id := scanRequest(b)
	if id == nil {
		return
	}
	r := &Request{ID: id}
	ctx, free, ok := p.begin(p.ctx, r)
	if !ok {
		p.refused.Add(1)
		return
	}
	p.serving.Go(func() {
		defer free()
		body := AppendError(nil, id, Errorf(CodeInvalidRequest, "the request cannot be read: %s", cause))
		if err := p.send(ctx, Outgoing{Body: body}); err != nil && p.ctx.Err() == nil {
			p.log.Debug("an answer was not sent", "error", err.Error())
		}
	})
}

// Serve handles a request in the caller's goroutine and appends the answer to
// b. It is for listeners that carry each answer themselves.
func (p *Peer) Serve(ctx context.Context, b []byte, r *Request) []byte {
	ctx, free, ok := p.begin(ctx, r)
	if !ok {
		p.refused.Add(1)
		return AppendError(b, r.ID, Errorf(CodeInternal, "too many requests are under way"))
	}
	defer free()
	return p.answer(ctx, b, r)
}

func (p *Peer) begin(parent context.Context, r *Request) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancel(parent)
	id := string(r.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, taken := p.inbound[id]
	if taken || len(p.inbound) >= p.cfg.MaxRequests || p.err != nil {
		cancel()
		return nil, nil, false
	}
	p.inbound[id] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		delete(p.inbound, id)
		p.mu.Unlock()
	}, true
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

// handle keeps a defect in a handler from ending the process.
func (p *Peer) handle(ctx context.Context, r *Request) (result []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("a request handler panicked", "method", r.Method, "panic", fmt.Sprint(v))
			result, err = nil, Errorf(CodeInternal, "internal error")
		}
	}()
	return p.cfg.Handle(ctx, r)
}

// CancelRequest ends the context of a request of the other side that is under
// way. It reports false where there is none of this id.
func (p *Peer) CancelRequest(id []byte) bool {
	p.mu.Lock()
	cancel := p.inbound[string(id)]
	p.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}
