package jsonrpc

import (
	"context"
	"strings"
	"testing"
)

// TestDuplicateID checks that the answer to a repeated id names the reason.
func TestDuplicateID(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	p, _ := start(t, Config{MaxRequests: 1, Handle: func(context.Context, *Request) ([]byte, error) { close(inside); <-leave; return []byte("{}"), nil }})
	done := make(chan []byte)
	go func() { done <- p.Serve(t.Context(), nil, &Request{ID: []byte("7"), Method: "a"}) }()
	<-inside
	for id, want := range map[string]string{"7": "the id belongs to a request that is still being handled", "8": "too many concurrent requests"} {
		if got := string(p.Serve(t.Context(), nil, &Request{ID: []byte(id), Method: "a"})); !strings.Contains(got, want) {
			t.Errorf("id %s: %s", id, got)
		}
	}
	close(leave)
	if got := string(<-done); !strings.Contains(got, `"result"`) {
		t.Error(got)
	}
}
