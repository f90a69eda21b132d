package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
)

// Payload is the echoed text: 64 bytes. As the argument of a plain tools/call it results in a request of
// about 164 bytes and a response of about 142.
const Payload = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// EchoTool and StatTool are the tools of every measured server. The first returns its argument "text", the
// second a [Stat] as JSON text.
const (
	EchoTool = "echo"
	StatTool = "stat"
)

// Peer is a client connected to a server in another process.
type Peer interface {
	// Call calls one of the two tools with the given text and returns the text of the result. It is safe for
	// concurrent use.
	Call(ctx context.Context, tool, text string) (string, error)
	// Close ends the connection and the server process.
	Close() error
}

// Stat is the resource usage of a process since its start.
type Stat struct {
	Alloc uint64 `json:"alloc"`  // bytes allocated on the heap, including freed ones
	CPU   int64  `json:"cpu_ns"` // user and system time in nanoseconds; 0 if it cannot be read
}

// Self returns the Stat of this process.
func Self() Stat {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Stat{Alloc: m.TotalAlloc, CPU: cpu()}
}

// Answer implements the tools of a measured server. It returns the text that Call must return.
func Answer(tool, text string) (string, error) {
	switch tool {
	case EchoTool:
		return text, nil
	case StatTool:
		b, err := json.Marshal(Self())
		return string(b), err
	}
	return "", fmt.Errorf("bench: no tool %q here: only %s and %s", tool, EchoTool, StatTool)
}

// echo makes one measured call and checks the result.
func echo(ctx context.Context, p Peer) error {
	got, err := p.Call(ctx, EchoTool, Payload)
	if err != nil {
		return err
	}
	if got != Payload {
		return fmt.Errorf("bench: echo returned %d bytes %.80q instead of the payload", len(got), got)
	}
	return nil
}

// both returns the combined usage of client and server.
func both(ctx context.Context, p Peer) (Stat, error) {
	text, err := p.Call(ctx, StatTool, "")
	if err != nil {
		return Stat{}, err
	}
	var server Stat
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&server); err != nil {
		return Stat{}, fmt.Errorf("bench: reading the server's stat %.80q: %w", text, err)
	}
	s := Self()
	return Stat{Alloc: s.Alloc + server.Alloc, CPU: s.CPU + server.CPU}, nil
}
