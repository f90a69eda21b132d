package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitSignals checks that a signal always ends the process, even if the work ignores its context.
func TestAwaitSignals(t *testing.T) {
	tests := []struct {
		name   string
		grace  time.Duration
		second time.Duration // time of the second signal; 0 if there is none
		done   time.Duration // time at which the work ends; 0 if it never ends
		now    bool
		took   time.Duration
		told   int
	}{
		{"it ends at once", 0, 0, time.Second, false, time.Second, 0},
		{"it ends slowly", 0, 0, 10 * time.Second, false, 10 * time.Second, 1},
		{"it does not end", 0, 0, 0, true, atLatest, 1},
		{"it has a grace", time.Minute, 0, 0, true, time.Minute + atLatest, 1},
		{"a second signal", 0, time.Second, 0, true, time.Second, 0},
		{"a second signal, when it was told of", 0, 5 * time.Second, 0, true, 5 * time.Second, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, done, told := make(chan os.Signal, 2), make(chan struct{}), 0
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				got <- syscall.SIGTERM
				if tt.second > 0 {
					time.AfterFunc(tt.second, func() { got <- syscall.SIGINT })
				}
				if tt.done > 0 {
					time.AfterFunc(tt.done, func() { close(done) })
				}
				began := time.Now()
				s, now := awaitSignals(got, done, cancel, func(signalled) { told++ }, func() time.Duration { return tt.grace })
				want := syscall.SIGTERM
				if tt.second > 0 {
					want = syscall.SIGINT
				}
				if now != tt.now || s.sig != want || time.Since(began) != tt.took || told != tt.told {
					t.Errorf("%v %v after %v, told %d times", s, now, time.Since(began), told)
				}
				if by, ok := endedBy(ctx); !ok || by.sig != syscall.SIGTERM {
					t.Errorf("the context ended by %v", context.Cause(ctx))
				}
			})
		})
	}
}

// stuck is a stdin without any input. It signals when it is read.
type stuck struct{ read chan struct{} }

func (s stuck) Read([]byte) (int, error) {
	close(s.read)
	select {}
}

// TestStdinEnds checks that a command that waits for stdin ends with its context.
func TestStdinEnds(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"tables", "show", "-"},
		{"tables", "concat", "-", "--out", "t.arrow"},
		{"run", "--model", "demo", "--data-in", "-", "hello"},
		{"run", "--model", "demo", "-"},
		{"-c", "-", "config", "show"},
		{"config", "import", "-"},
		{"policy", "test", "-"},
		{"tools", "call", "--table", "-", "--row", "0"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			in := stuck{make(chan struct{})}
			go func() { <-in.read; cancel(signalled{syscall.SIGINT}) }()
			var said bytes.Buffer
			if status := run(ctx, args, stdio{in, &said, &said}); status != exitInterrupted || said.String() != "stopped by Ctrl-C\n" {
				t.Errorf("status %d: %s", status, said.String())
			}
		})
	}
}
