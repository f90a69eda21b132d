package floor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// MinPipe is the client of a JSON-RPC server over two byte streams. It has a map of open ids, a reading
// goroutine, and a lock for writing.
type MinPipe struct {
	in    io.WriteCloser
	wait  func() error
	done  chan struct{} // closed when the reader has ended
	write sync.Mutex

	mu   sync.Mutex
	last int64
	open map[int64]chan response
	err  error // reason for the end of the reader
}

// StartMinPipe starts the command, which must run [ServeMinPipe], and connects to its stdin and stdout.
func StartMinPipe(command ...string) (*MinPipe, error) {
	cmd, in, out, err := start(command)
	if err != nil {
		return nil, err
	}
	return NewMinPipe(in, out, cmd.Wait), nil
}

// NewMinPipe returns a client that writes to in and reads from out. Close closes in and calls wait.
func NewMinPipe(in io.WriteCloser, out io.Reader, wait func() error) *MinPipe {
	p := &MinPipe{in: in, wait: wait, done: make(chan struct{}), open: make(map[int64]chan response)}
	go p.read(bufio.NewReaderSize(out, 64<<10))
	return p
}

// Call implements [bench.Peer].
func (p *MinPipe) Call(ctx context.Context, tool, text string) (string, error) {
	answer := make(chan response, 1)
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return "", p.err
	}
	p.last++
	id := p.last
	p.open[id] = answer
	p.mu.Unlock()

	b, err := encodeCall(id, tool, text)
	if err != nil {
		return "", err
	}
	b = append(b, '\n')
	p.write.Lock()
	_, err = p.in.Write(b)
	p.write.Unlock()
	if err != nil {
		return "", fmt.Errorf("floor: writing a request: %w", err)
	}
	select {
	case r := <-answer:
		return r.text()
	case <-p.done:
		return "", p.err
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.open, id)
		p.mu.Unlock()
		return "", ctx.Err()
	}
}

func (p *MinPipe) read(r *bufio.Reader) {
	defer close(p.done)
	for {
		line, err := r.ReadBytes('\n')
		var resp response
		if err == nil {
			err = json.Unmarshal(line, &resp)
		}
		p.mu.Lock()
		if err != nil {
			p.err = fmt.Errorf("floor: reading a response: %w", err)
			p.mu.Unlock()
			return
		}
		answer := p.open[resp.ID]
		delete(p.open, resp.ID)
		p.mu.Unlock()
		if answer != nil {
			answer <- resp
		}
	}
}

// Close implements [bench.Peer].
func (p *MinPipe) Close() error {
	err := errors.Join(p.in.Close(), p.wait())
	<-p.done
	return err
}

// ServeMinPipe handles the requests from in sequentially until it ends. This is the fastest way for tools
// that never wait.
func ServeMinPipe(in io.Reader, out io.Writer) error {
	return serveLines(in, out, func(f func()) { f() })
}

// ServeSpawnPipe does the same with a goroutine for each request, which tools that may wait require. On a
// machine with few cores, waking another thread costs about as much as everything else.
func ServeSpawnPipe(in io.Reader, out io.Writer) error {
	var calls sync.WaitGroup
	err := serveLines(in, out, calls.Go)
	calls.Wait()
	return err
}

func serveLines(in io.Reader, out io.Writer, do func(func())) error {
	var (
		r     = bufio.NewReaderSize(in, 64<<10)
		write sync.Mutex
	)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("floor: reading a request: %w", err)
		}
		do(func() {
			b, err := handle(line)
			if err != nil {
				return // not a request, so no response is expected
			}
			write.Lock()
			defer write.Unlock()
			_, _ = out.Write(append(b, '\n')) // fails if the client has gone
		})
	}
}

// start starts a command with pipes for stdin and stdout. It passes stderr on.
func start(command []string) (*exec.Cmd, io.WriteCloser, io.Reader, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("floor: starting the server: %w", err)
	}
	return cmd, in, out, nil
}

var _ bench.Peer = (*MinPipe)(nil)
