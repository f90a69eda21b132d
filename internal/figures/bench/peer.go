package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
)

// Payload is the text that is echoed: 64 bytes. As the argument of a plain
// tools/call it makes a request of about 164 bytes and a reply of about 142.
const Payload = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// EchoTool and StatTool name the two tools of every measured server: the first
// answers with its argument "text", the second with a [Stat] as JSON text.
const (
	EchoTool = "echo"
	StatTool = "stat"
)

// Peer is one client that is joined to one server in another process.
type Peer interface {
	// Call runs one of the two tools with the given text and returns the text of
	// the answer. It is safe for concurrent use.
	Call(ctx context.Context, tool, text string) (string, error)
	// Close ends the connection and the server process.
	Close() error
}

// Stat is what a process has used since it began.
type Stat struct {
	Alloc uint64 `json:"alloc"`  // bytes allocated on the heap, freed ones included
	CPU   int64  `json:"cpu_ns"` // user and system time, in nanoseconds; 0 where it cannot be read
}

// Self returns the Stat of this process.
func Self() Stat {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Stat{Alloc: m.TotalAlloc, CPU: cpu()}
}

// Answer is the work of a measured server's tool: it returns what Call has to
// give back.
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

// echo makes one measured call and checks that its answer is the right one.
func echo(ctx context.Context, p Peer) error {
	got, err := p.Call(ctx, EchoTool, Payload)
	if err != nil {
		return err
	}
	if got != Payload {
		return fmt.Errorf("bench: echo gave %d bytes %.80q, not what was sent", len(got), got)
	}
	return nil
}

// both returns what client and server have used together.
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
