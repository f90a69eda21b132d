package jsonrpc

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPeerFlood checks that a flood of skipped messages does not flood the log.
func TestPeerFlood(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != slog.MessageKey && a.Key != "in_a_row" {
				return slog.Attr{}
			}
			return a
		}}))
	s := &pipe{in: make(chan any, 20_000)}
	for i := range 9_415 {
		s.in <- fmt.Appendf(nil, "garbage %d", i)
	}
	s.in <- []byte(`{"method":"x"}`)
	for range 12 {
		s.in <- &SizeError{Prefix: []byte("x"), Limit: 1}
	}
	s.in <- []byte(`one`)
	s.in <- fmt.Errorf("the end")
	if err := New(s, Config{Logger: log}).Run(t.Context()); err == nil {
		t.Fatal("no end")
	}
	bad, big := `msg="skipped a message that cannot be read"`, `msg="skipped a message over the limit"`
	want := []string{bad, bad, bad, bad + " in_a_row=10", bad + " in_a_row=100", bad + " in_a_row=1000",
		`msg="skipped 8,415 more that cannot be read"`,
		big, big, big, big + " in_a_row=10", bad, `msg="skipped 2 more over the limit"`}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(text.String()), "\n")); diff != "" {
		t.Error(diff)
	}
}
