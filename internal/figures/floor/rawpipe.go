package floor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// RawPipe sends a line and waits for a line: only the bytes of an echo. Calls are sequential.
type RawPipe struct {
	mu   sync.Mutex
	in   io.WriteCloser
	out  *bufio.Reader
	wait func() error
	echo []byte
}

// rawReply is the response of a raw server to an echo: prebuilt bytes.
var rawReply = []byte(`{"jsonrpc":"2.0","id":1000,"result":{"content":[{"type":"text","text":"` + bench.Payload +
	`"}]}}` + "\n")

// StartRawPipe starts the command, which must run [ServeRawPipe], and connects to its stdin and stdout.
func StartRawPipe(command ...string) (*RawPipe, error) {
	cmd, in, out, err := start(command)
	if err != nil {
		return nil, err
	}
	return NewRawPipe(in, out, cmd.Wait)
}

// NewRawPipe returns a client that writes to in and reads from out. Close closes in and calls wait.
func NewRawPipe(in io.WriteCloser, out io.Reader, wait func() error) (*RawPipe, error) {
	b, err := encodeCall(1000, bench.EchoTool, bench.Payload)
	if err != nil {
		return nil, err
	}
	return &RawPipe{in: in, out: bufio.NewReaderSize(out, 64<<10), wait: wait, echo: append(b, '\n')}, nil
}

// Call implements [bench.Peer]. It does not check the response to an echo.
func (p *RawPipe) Call(_ context.Context, tool, text string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.echo
	if tool != bench.EchoTool {
		line = []byte(tool + "\n")
	}
	if _, err := p.in.Write(line); err != nil {
		return "", fmt.Errorf("floor: writing a line: %w", err)
	}
	got, err := p.out.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("floor: reading a line: %w", err)
	}
	if tool != bench.EchoTool {
		return strings.TrimSpace(string(got)), nil
	}
	return text, nil
}

// Close implements [bench.Peer].
func (p *RawPipe) Close() error { return errors.Join(p.in.Close(), p.wait()) }

// ServeRawPipe responds to every line from in until it ends.
func ServeRawPipe(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("floor: reading a line: %w", err)
		}
		reply := rawReply
		if line[0] != '{' {
			text, err := bench.Answer(strings.TrimSpace(string(line)), "")
			if err != nil {
				return err
			}
			reply = []byte(text + "\n")
		}
		if _, err := out.Write(reply); err != nil {
			return fmt.Errorf("floor: writing a line: %w", err)
		}
	}
}

var _ bench.Peer = (*RawPipe)(nil)
