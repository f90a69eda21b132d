package jsonrpc

import "context"

// AfterEnd runs f in a new goroutine once Done is closed. It uses no goroutine before. Stop reports whether
// it prevented f from running.
func (p *Peer) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(p.ctx, f) }

// Hold sends a long-lived request, such as a subscription, on a stream that is not an [Exchanger]. It returns
// when the request is sent. Then is called once, in a new goroutine: with nil after a response with a result,
// otherwise with the error that [Peer.Call] would return. The call uses no goroutine while it is open.
// Callers must wait for then after the peer has ended.
func (p *Peer) Hold(m Outgoing, then func(err error)) {
	w := &pending{}
	stop := p.AfterEnd(func() {
		if p.forget(m.ID, w) {
			then(&LostError{Sent: true, Err: p.Err()})
		}
	})
	w.then = func(err error) {
		stop()
		then(err)
	}
	p.mu.Lock()
	err := p.err
	if err == nil {
		p.open[m.ID] = w
	}
	p.mu.Unlock()
	if err != nil { // the call was never registered
		go then(&LostError{Err: err})
		return
	}
	if err := p.send(p.ctx, m); err != nil && p.forget(m.ID, w) {
		go w.then(&LostError{Err: err})
	}
}
