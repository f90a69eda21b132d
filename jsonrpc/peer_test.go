package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is an in-memory stream. Sent messages go to out.
type pipe struct {
	out chan []byte
	in  chan any // []byte or error
}

func (p *pipe) Send(ctx context.Context, m Outgoing) error {
	select {
	case p.out <- append([]byte(nil), m.Body...):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Recv(ctx context.Context) ([]byte, error) {
	select {
	case v := <-p.in:
		if err, ok := v.(error); ok {
			return nil, err
		}
		return v.([]byte), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func start(t *testing.T, cfg Config) (*Peer, *pipe) {
	s := &pipe{out: make(chan []byte, 1000), in: make(chan any, 1000)}
	p := New(s, cfg)
	ended := make(chan struct{})
	go func() { _ = p.Run(t.Context()); close(ended) }()
	t.Cleanup(func() { p.Close(nil); <-ended })
	return p, s
}

func call(ctx context.Context, p *Peer) ([]byte, error) {
	id := p.NextID()
	return p.Call(ctx, Outgoing{Body: AppendRequest(nil, id, "x", nil), ID: id, Method: "x"})
}

func TestPeer(t *testing.T) {
	for _, c := range []struct {
		name string
		say  []any
		want string
		err  func(error) bool
	}{
		{"result", []any{`{"id":1,"result":{"v":1.0}}`}, `{"v":1.0}`, nil},
		{"W3_banner_lines", []any{"hello", "", `{"id":1,"result":1}`}, "1", nil},
		{"W15_string_id", []any{`{"id":"1","result":1}`}, "1", nil},
		{"fraction_id", []any{`{"id":1.0,"result":1}`}, "1", nil}, // from implementations with only floating-point numbers
		{"W16_unknown_id", []any{`{"id":99,"result":0}`, `{"id":1,"result":1}`}, "1", nil},
		{"W16_truncated", []any{`{"id":1,"result":{"c`}, "", func(err error) bool { return errors.Is(err, ErrSyntax) }},
		{"W17_duplicate_key", []any{`{"id":1,"result":{"a":1,"a":2}}`}, "",
			func(err error) bool { return errors.Is(err, ErrSyntax) }},
		{"batch_20250326", []any{`[{"id":1,"result":1}]`}, "1", nil},
		{"L4_too_large", []any{&SizeError{Prefix: []byte(`{"id":1,"result":"aaa`), Limit: 9}}, "",
			func(err error) bool { var e *SizeError; return errors.As(err, &e) }},
		{"L4_only_one_open", []any{&SizeError{Prefix: []byte(`xx`), Limit: 9}}, "",
			func(err error) bool { var e *SizeError; return errors.As(err, &e) }},
		{"L4_notice_too_large", []any{&SizeError{Prefix: []byte(`{"method":"n","params":"aaa`), Limit: 9},
			`{"id":1,"result":1}`}, "1", nil},
		{"L4_request_too_large", []any{&SizeError{Prefix: []byte(`{"method":"q","params":"aaa`), Limit: 9},
			`{"id":1,"result":1}`}, "1", nil},
		{"error_data", []any{`{"id":1,"error":{"code":-32602,"message":"bad input","data":{"x":1.0}}}`}, "",
			func(err error) bool {
				var e *Error
				return errors.As(err, &e) && e.Code == -32602 && string(e.Data) == `{"x":1.0}`
			}},
		{"lost", []any{io.ErrUnexpectedEOF}, "",
			func(err error) bool { var e *LostError; return errors.As(err, &e) && e.Sent }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := start(t, Config{})
			go func() {
				<-s.out
				for _, v := range c.say {
					if text, ok := v.(string); ok {
						v = []byte(text)
					}
					s.in <- v
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			raw, err := call(ctx, p)
			if string(raw) != c.want || (err != nil) != (c.err != nil) || err != nil && !c.err(err) {
				t.Fatalf("%s, %v", raw, err)
			}
		})
	}
}

// slowPost accepts a message but does not return, like a slow POST of HTTP+SSE.
type slowPost struct {
	*pipe
	taken chan struct{}
}

func (s *slowPost) Send(ctx context.Context, m Outgoing) error {
	close(s.taken)
	<-ctx.Done()
	return ctx.Err()
}

// TestPeerAbandonedOnTheWay cancels a call during Send. The request may have been sent, so Abandoned is called.
func TestPeerAbandonedOnTheWay(t *testing.T) {
	told := make(chan int64, 1)
	s := &slowPost{&pipe{in: make(chan any)}, make(chan struct{})}
	p := New(s, Config{Abandoned: func(id int64, _ error) { told <- id }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.taken; cancel() }()
	if _, err := call(ctx, p); !errors.Is(err, context.Canceled) || len(told) != 1 {
		t.Fatal(err, len(told))
	}
}

// TestPeerCallsNothingForWhoHasGone makes a call with a context that is already cancelled. Nothing may be sent.
func TestPeerCallsNothingForWhoHasGone(t *testing.T) {
	told := 0
	p, s := start(t, Config{Abandoned: func(int64, error) { told++ }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(s.out) != 0 || told != 0 || p.InFlight() != 0 {
		t.Fatal(len(s.out), told, p.InFlight())
	}
}

func TestPeerAbandoned(t *testing.T) {
	told := make(chan int64, 1)
	p, s := start(t, Config{Abandoned: func(id int64, _ error) { told <- id }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.out; cancel() }()
	if _, err := call(ctx, p); !errors.Is(err, context.Canceled) || <-told != 1 {
		t.Fatal(err)
	}
	s.in <- []byte(`{"id":1,"result":1}`) // late
	go func() { <-s.out; s.in <- []byte(`{"id":2,"result":2}`) }()
	if raw, err := call(t.Context(), p); string(raw) != "2" || err != nil || p.Stats().Late != 1 {
		t.Fatal(string(raw), err, p.Stats())
	}
}

func TestPeerServes(t *testing.T) {
	release := make(chan struct{})
	p, s := start(t, Config{MaxRequests: 2, Handle: func(ctx context.Context, r *Request) ([]byte, error) {
		switch r.Method {
		case "wait":
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case "panic":
			panic("x")
		}
		return []byte(`{"ok":1.0}`), nil
	}})
	s.in <- []byte(`{"id":"a\u0062","method":"go"}`)
	if got := string(<-s.out); got != `{"jsonrpc":"2.0","id":"a\u0062","result":{"ok":1.0}}` {
		t.Fatal(got)
	}
	s.in <- []byte(`{"id":5,"method":"panic"}`)
	<-s.out
	// L12: a flood of requests is bounded, and the reader continues.
	for i := range 100 {
		s.in <- fmt.Appendf(nil, `{"id":%d,"method":"wait"}`, 100+i)
	}
	go func() {
		for b := range s.out {
			if string(b) == string(AppendRequest(nil, 1, "x", nil)) {
				s.in <- []byte(`{"id":1,"result":1}`)
				return
			}
		}
	}()
	if raw, err := call(t.Context(), p); err != nil || string(raw) != "1" || p.Stats().Refused < 90 {
		t.Fatal(string(raw), err, p.Stats())
	}
	close(release)
}

// TestPeerRefuses checks that an unreadable request is answered, so that its sender does not wait forever.
func TestPeerRefuses(t *testing.T) {
	_, s := start(t, Config{Handle: func(context.Context, *Request) ([]byte, error) { return []byte(`{}`), nil }})
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for _, c := range []struct{ name, say, want string }{
		{"too deep", `{"jsonrpc":"2.0","id":5,"method":"x","params":[` + deep + `]}`, `"id":5,"error":{"code":-32600`},
		{"id at the end", `{"method":"x","params":{"a":1,"a":2},"id":"b"}`,
			`"id":"b","error":{"code":-32600,"message":"the request cannot be read: `},
		{"an answer in between", `{"id":6,"method":"go"}`, `"id":6,"result"`},
	} {
		// None of these has an id that a response could carry.
		for _, mute := range []string{`{"method":"x","params":[` + deep + `]}`, `{"id":{},"method":"x","x":1,"x":1}`,
			`{"id":1,"id":2,"method":"x"}`,
			`{"id":` + strings.Repeat("1", 1000) + `,"method":"x","x":1,"x":1}`, `{"id":1e,"method":"x"}`,
			`{"id":9,"result":{"a":1,"a":2}}`} {
			s.in <- []byte(mute)
		}
		s.in <- []byte(c.say)
		if got := string(<-s.out); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	s.in <- &SizeError{Prefix: []byte(`{"jsonrpc":"2.0","id":7,"method":"x","params":"aaa`), Limit: 9}
	if got := string(<-s.out); !strings.Contains(got,
		`"id":7,"error":{"code":-32600,"message":"the request cannot be read: a message is larger`) {
		t.Error(got)
	}
}
