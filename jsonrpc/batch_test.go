package jsonrpc

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestBatchEndsGarbage checks that a readable message resets the count of unreadable messages, also if it arrives in a
// batch.
func TestBatchEndsGarbage(t *testing.T) {
	s := &pipe{in: make(chan any, 100), out: make(chan []byte, 100)}
	const most = 5
	for range 4 {
		for range most - 1 {
			s.in <- []byte("garbage")
		}
		s.in <- []byte(`[{"jsonrpc":"2.0","method":"x"}]`)
	}
	s.in <- fmt.Errorf("the end")
	if err := New(s, Config{MaxGarbage: most}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the end") {
		t.Errorf("%v", err)
	}
}

// TestLongBatch checks that the requests after the limit of a batch are answered with an error.
func TestLongBatch(t *testing.T) {
	handled := make(chan string, MaxBatch+10)
	p, s := start(t, Config{MaxRequests: 10, Quick: func(*Request) bool { return true },
		Handle: func(_ context.Context, r *Request) ([]byte, error) { handled <- string(r.ID); return []byte("{}"), nil }})
	notify := strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, MaxBatch-1)
	p.Deliver([]byte("[" + notify + `{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"a"}]`))
	var all []string
	for range 2 {
		all = append(all, string(<-s.out))
	}
	text := strings.Join(all, "\n")
	if !strings.Contains(text, `"id":2,"error"`) || !strings.Contains(text, "follows the first 1000 messages of a batch") || !strings.Contains(text, `"id":1,"result"`) {
		t.Error(text)
	}
	if id := <-handled; id != "1" || len(handled) > 0 {
		t.Errorf("handled %s and %d more", id, len(handled))
	}
}
