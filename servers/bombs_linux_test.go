package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/testserver"
)

const (
	bombMemory = 256 << 20 // resident, at its peak
	bombKills  = 512 << 20 // limit of the process's data: a larger allocation ends the process
	bombTime   = 2 * time.Second
)

// TestA2 has servers send more data than any memory can hold. The client is a process with a limit of its memory, and
// must stay far below this limit. Each operation must end in time, either with success or with an error that names the
// server. make check runs all cases (TENON_HOSTILE=all).
func TestA2(t *testing.T) {
	longtest.Skip(t)
	slots := make(chan bool, 2)
	var wg sync.WaitGroup
	n, rows := 0, 0
	for _, kind := range []string{"stdio", "http", "sse", "ws", "jsonrpc"} {
		for _, bomb := range testserver.Bombs(kind) {
			if n++; os.Getenv("TENON_HOSTILE") != "all" && n%9 != 1 {
				continue
			}
			rows++
			slots <- true
			wg.Go(func() {
				defer func() { <-slots }()
				victim(t, kind, bomb)
			})
		}
	}
	wg.Wait()
	t.Logf("%d rows", rows)
}

// suffered is the report of the process that received a bomb.
type suffered struct {
	Peak   int64 // bytes
	List   string
	Call   string
	Longer time.Duration // than the limits
	Alive  string        // by how much an operation exceeded the limits
}

// victim starts the process. If it takes too long, victim starts it again, up to four times: a delay by the bomb
// happens every time, a delay by other programs does not.
func victim(t *testing.T, kind, bomb string) {
	var longer []time.Duration
	for len(longer) < 4 {
		took, ok := explode(t, kind, bomb)
		if !ok || took <= time.Second {
			return
		}
		longer = append(longer, took)
	}
	t.Errorf("%s over %s: %v longer than the limits", bomb, kind, longer)
}

// explode starts the process once, checks its report, and returns by how much it exceeded the limits.
func explode(t *testing.T, kind, bomb string) (longer time.Duration, ok bool) {
	arg := ""
	if kind != "stdio" {
		arg = listening(t, "--"+kind, "127.0.0.1:0", "--fault", bomb+"@list")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], kind, bomb, arg)
	cmd.Env = append(os.Environ(), role+"=victim")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	var s suffered
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Errorf("%s over %s: %v\n%.2000s", bomb, kind, err, said.String())
		return 0, false
	}
	if s.Peak > bombMemory {
		t.Errorf("%s over %s: %d MiB", bomb, kind, s.Peak>>20)
	}
	if s.Alive != "3" {
		t.Errorf("%s over %s: the server beside it says %q", bomb, kind, s.Alive)
	}
	for _, text := range []string{s.List, s.Call} {
		if text != "" && !strings.Contains(text, "'t'") {
			t.Errorf("%s over %s: the error does not name the server: %s", bomb, kind, text)
		}
	}
	t.Logf("%-14s %-8s %3d MiB  list: %.90s", bomb, kind, s.Peak>>20, s.List)
	return s.Longer, true
}

// playVictim is the main function of the process: it lists the tools of a server and calls one.
func playVictim() {
	kind, bomb, url := os.Args[1], os.Args[2], os.Args[3]
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bombKills, Max: bombKills}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cfg := process("--stdio", "--fault", bomb+"@list")
	if kind != "stdio" {
		cfg = Config{URL: url, Transport: map[string]string{"sse": TransportSSE, "jsonrpc": TransportJSONRPC}[kind]}
	}
	cfg.Timeout, cfg.RequestTimeout, cfg.Restart = bombTime, bombTime, RestartNever
	s, other := New("t", cfg, Options{}), New("other", process(), Options{})
	var got suffered
	try := func(f func() error) (text string) {
		begun := time.Now()
		if err := f(); err != nil {
			text = err.Error()
		}
		got.Longer = max(got.Longer, time.Since(begun)-2*bombTime)
		return text
	}
	ctx := context.Background()
	got.List = try(func() error { _, err := s.List(ctx); return err })
	got.Call = try(func() error {
		_, err := s.Call(ctx, tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`)})
		return err
	})
	if r, err := other.Call(ctx, tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`)}); err == nil && len(r.Content) == 1 {
		got.Alive = r.Content[0].Text
	}
	_ = s.Close()
	_ = other.Close()
	b, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); err == nil && f[0] == "VmHWM:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64) // it is a number
			got.Peak = kb << 10
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		os.Exit(1)
	}
}
