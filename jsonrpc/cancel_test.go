package jsonrpc

import (
	"context"
	"strings"
	"testing"
)

// TestCancelledRequest checks that a cancelled request gets no response, and that its id and its place are free again.
func TestCancelledRequest(t *testing.T) {
	began := make(chan struct{})
	p, s := start(t, Config{MaxRequests: 1, Handle: func(ctx context.Context, r *Request) ([]byte, error) {
		if r.Method == "wait" {
			close(began)
			<-ctx.Done()
		}
		return []byte("{}"), ctx.Err()
	}})
	p.Deliver([]byte(`{"jsonrpc":"2.0","id":1,"method":"wait"}`))
	<-began
	if !p.CancelRequest([]byte("1")) || p.CancelRequest([]byte("2")) {
		t.Fatal("CancelRequest does not say whether the request is running")
	}
	for p.isBusy("1") {
	}
	p.Deliver([]byte(`{"jsonrpc":"2.0","id":1,"method":"next"}`))
	if got := string(<-s.out); !strings.Contains(got, `"id":1,"result"`) || len(s.out) > 0 {
		t.Errorf("%s and %d more", got, len(s.out))
	}
}

func (p *Peer) isBusy(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inbound[id] != nil
}

// again is a stream whose other side uses the id of a request again as soon as it gets the response.
type again struct {
	pipe
	peer *Peer
	left int
}

func (a *again) Send(ctx context.Context, m Outgoing) error {
	if a.left--; a.left > 0 {
		a.peer.Deliver([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
	}
	return a.pipe.Send(ctx, m)
}

// TestIDAgain checks that an id can be used again when its request was answered, as revision 2026-07-28 allows.
func TestIDAgain(t *testing.T) {
	s := &again{pipe: pipe{out: make(chan []byte, 10), in: make(chan any, 10)}, left: 3}
	s.peer = New(s, Config{Quick: func(*Request) bool { return true },
		Handle: func(context.Context, *Request) ([]byte, error) { return []byte("{}"), nil }})
	s.peer.Deliver([]byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
	if n := len(s.out); n != 3 || s.peer.Stats().Refused > 0 {
		t.Errorf("%d responses, want 3; %+v", n, s.peer.Stats())
	}
}
