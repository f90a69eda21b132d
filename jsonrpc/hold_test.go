package jsonrpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	hold := func(p *Peer) <-chan error {
		ended := make(chan error, 2)
		id := p.NextID()
		p.Hold(Outgoing{ID: id, Method: "listen", Body: AppendRequest(nil, id, "listen", nil)},
			func(err error) { ended <- err })
		return ended
	}
	t.Run("answered", func(t *testing.T) {
		p, s := start(t, Config{})
		ended := hold(p)
		<-s.out
		if p.InFlight() != 1 {
			t.Fatal(p.InFlight())
		}
		s.in <- []byte(`{"id":1,"result":{}}`)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		p.Close(nil)
		<-p.Done()
		if len(ended) > 0 {
			t.Fatal("then was called twice")
		}
	})
	// A held call never receives a message without an id.
	t.Run("beside an answer that is too large", func(t *testing.T) {
		p, s := start(t, Config{})
		ended := hold(p)
		<-s.out
		go func() { <-s.out; s.in <- &SizeError{Prefix: []byte(`{"result":"aaa`), Limit: 9} }()
		var size *SizeError
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := call(ctx, p); !errors.As(err, &size) {
			t.Fatal(err)
		}
		if len(ended) > 0 || p.InFlight() != 1 {
			t.Fatal(len(ended), p.InFlight())
		}
	})
	t.Run("refused", func(t *testing.T) {
		p, s := start(t, Config{})
		ended := hold(p)
		s.in <- []byte(`{"id":1,"error":{"code":-32601,"message":"no"}}`)
		var e *Error
		if err := <-ended; !errors.As(err, &e) {
			t.Fatal(err)
		}
	})
	t.Run("lost", func(t *testing.T) {
		p, s := start(t, Config{})
		ended := hold(p)
		s.in <- io.ErrUnexpectedEOF
		var lost *LostError
		if err := <-ended; !errors.As(err, &lost) || !lost.Sent {
			t.Fatal(err)
		}
	})
	t.Run("lost before", func(t *testing.T) {
		p, _ := start(t, Config{})
		p.Close(io.EOF)
		var lost *LostError
		if err := <-hold(p); !errors.As(err, &lost) || lost.Sent {
			t.Fatal(err)
		}
	})
}
