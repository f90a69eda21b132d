package jsonrpc

import "context"

// AfterEnd runs f in a new goroutine after Done is closed. Until then it uses no goroutine. stop reports whether it
// prevented f from running.
func (p *Peer) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(p.ctx, f) }

// Hold sends a long-lived request, such as a subscription, on a stream that is not an [Exchanger]. It returns when the
// request is sent. then is called once, in a new goroutine: with nil after a response with a result, otherwise with the
// error that [Peer.Call] would return. While the call is open, it uses no goroutine. After the peer has ended, callers
// must wait until then was called.
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
