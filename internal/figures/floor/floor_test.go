package floor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes connects a server function with two pipes.
func pipes(serve func(io.Reader, io.Writer) error) (io.WriteCloser, io.Reader, func() error) {
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ir, ow)
		ended <- errors.Join(err, ir.Close(), ow.Close())
	}()
	return iw, or, func() error { return <-ended }
}

func TestFloors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(HandleMinHTTP))
	defer server.Close()
	raw, err := NewRawPipe(pipes(ServeRawPipe))
	if err != nil {
		t.Fatal(err)
	}
	for name, peer := range map[string]bench.Peer{
		"raw pipe": raw,
		"min-pipe": NewMinPipe(pipes(ServeMinPipe)),
		"spawn":    NewMinPipe(pipes(ServeSpawnPipe)),
		"min-http": NewMinHTTP(server.URL, nil),
	} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 50 {
						got, err := peer.Call(t.Context(), bench.EchoTool, bench.Payload)
						if err != nil || got != bench.Payload {
							t.Errorf("echo = %q, %v", got, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if got, err := peer.Call(t.Context(), bench.StatTool, ""); err != nil || len(got) == 0 || got[0] != '{' {
				t.Errorf("stat = %q, %v", got, err)
			}
			if err := peer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBytes checks the sizes in performance.md: about 164 bytes for the request and 142 for the response,
// with an id of four digits.
func TestBytes(t *testing.T) {
	b, err := encodeCall(1000, bench.EchoTool, bench.Payload)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := handle(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 155 || len(b) > 170 || len(reply) < 135 || len(reply) > 150 {
		t.Errorf("request of %d bytes, reply of %d: %s %s", len(b), len(reply), b, reply)
	}
	if string(reply)+"\n" != string(rawReply) {
		t.Errorf("the raw pipe responds\n%s\nand the plain server\n%s", rawReply, reply)
	}
}

func TestMinPipeEnds(t *testing.T) {
	in, out, wait := pipes(func(io.Reader, io.Writer) error { return nil })
	p := NewMinPipe(in, out, wait)
	if _, err := p.Call(context.Background(), bench.EchoTool, "x"); err == nil {
		t.Error("a call to a stopped server returned no error")
	}
	_ = p.Close()
}

func TestCommits(t *testing.T) {
	c, err := OpenCommits(t.Context(), filepath.Join(t.TempDir(), "bare.db"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.One(t.Context(), []byte("alone")); err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := c.db.QueryRow("SELECT count(*) FROM rows").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d rows, %v, want 3", n, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
