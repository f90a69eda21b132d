package jsonrpc

import "context"

// AfterEnd runs f in a goroutine of its own once Done is closed; until then it costs
// none. Stop reports whether it kept f from being run.
func (p *Peer) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(p.ctx, f) }

// Hold makes a call that stays open for long, as a subscription does, on a stream that
// is no [Exchanger]. It returns when the call is sent. Then is called once, in a
// goroutine of its own, with nil at an answer with a result and with the error of
// [Peer.Call] else; until then the call costs no goroutine. Who calls Hold waits for
// then after the end of the peer.
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
	if err != nil { // it was not there to be forgotten
		go then(&LostError{Err: err})
		return
	}
	if err := p.send(p.ctx, m); err != nil && p.forget(m.ID, w) {
		go w.then(&LostError{Err: err})
	}
}
