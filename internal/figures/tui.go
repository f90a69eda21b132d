package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/pty"
)

const (
	tuiColumns, tuiRows = 120, 40
	tuiLines            = 5000 // of the conversation before the measured answer
	tuiDeltas           = 200  // pieces of the measured answer per second
	tuiKeys             = 100  // keys of a round
	tuiWindow           = 5 * time.Second
)

// measureTUI measures tenon chat at a pseudo-terminal, read through the emulator of its tests: the time from the start
// of the process to the prompt, and, while an answer arrives below 5,000 lines, the time from a key to its character on
// the screen and the CPU time of the process.
func measureTUI(s *session) error {
	exe := filepath.Join(s.tmp, "tenon")
	if err := s.build(exe, "./cmd/tenon"); err != nil {
		return err
	}
	var start, p99, p50, cpu []float64
	for range s.rounds {
		r, err := tuiRound(s, exe)
		if err != nil {
			return err
		}
		start, cpu = append(start, ms(r.start)), append(cpu, r.cpu)
		slices.Sort(r.keys)
		p50 = append(p50, ms(r.keys[len(r.keys)/2]))
		p99 = append(p99, ms(r.keys[int(math.Ceil(float64(len(r.keys))*0.99))-1]))
	}
	what := fmt.Sprintf("tenon chat, %d pieces of an answer a second below %d lines: ", tuiDeltas, tuiLines)
	s.add("TUI.key", what+fmt.Sprintf("key to screen, p99 of %d keys", tuiKeys), "ms", p99)
	s.add("TUI.key.p50", what+"key to screen, p50", "ms", p50)
	s.add("TUI.cpu", what+"CPU time of the process without keys", "cores", cpu)
	s.add("TUI.start", "tenon chat: start of the process to the prompt", "ms", start)
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// tuiResult is what one process of tenon chat showed.
type tuiResult struct {
	start time.Duration
	keys  []time.Duration
	cpu   float64 // cores
}

// tuiScreen is the emulated screen of the process.
type tuiScreen struct {
	control *os.File
	screen  *pty.Terminal

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// read feeds the emulator until the terminal is closed.
func (t *tuiScreen) read() {
	b := make([]byte, 64<<10)
	for {
		n, err := t.control.Read(b)
		_, _ = t.screen.Write(b[:n])
		t.mu.Lock()
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until a line of the screen begins with a text.
func (t *tuiScreen) await(ctx context.Context, begin string) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for {
		t.mu.Lock()
		changed := t.changed
		t.mu.Unlock()
		lines := t.screen.Lines()
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, begin) }) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the screen does not show %q:\n%s", begin, strings.Join(lines, "\n"))
		}
	}
}

// tuiRound starts tenon chat and measures it.
func tuiRound(s *session, exe string) (r tuiResult, err error) {
	dir, err := os.MkdirTemp(s.tmp, "chat")
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, "steps.yaml"), []byte(tuiSteps()), 0o600); err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte("version: 1\n"), 0o600); err != nil {
		return r, err
	}
	control, terminal, err := pty.Open(tuiColumns, tuiRows)
	if err != nil {
		return r, err
	}
	t := &tuiScreen{control: control, screen: pty.NewTerminal(tuiColumns, tuiRows), changed: make(chan struct{})}
	cmd := exec.CommandContext(s.ctx, exe, "chat", "-c", "tenon.yaml", "--model", "script:steps.yaml")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, terminal, terminal, terminal
	cmd.Env = []string{"HOME=" + dir, "TERM=xterm-256color", "TENON_NO_PROBE=1", "PATH=" + os.Getenv("PATH")}
	var reading sync.WaitGroup
	reading.Go(t.read)
	defer func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = terminal.Close()
		_ = control.Close()
		reading.Wait()
	}()
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	if err := t.await(s.ctx, ">"); err != nil {
		return r, err
	}
	r.start = time.Since(begun)
	if _, err := io.WriteString(control, "fill\r"); err != nil {
		return r, err
	}
	if err := t.await(s.ctx, fmt.Sprintf("• line %d", tuiLines)); err != nil {
		return r, err
	}
	if _, err := io.WriteString(control, "stream\r"); err != nil {
		return r, err
	}
	if err := t.await(s.ctx, "begins"); err != nil {
		return r, err
	}
	before, at := processTime(cmd.Process.Pid), time.Now()
	select {
	case <-time.After(tuiWindow):
	case <-s.ctx.Done():
		return r, s.ctx.Err()
	}
	r.cpu = (processTime(cmd.Process.Pid) - before).Seconds() / time.Since(at).Seconds()
	r.keys, err = t.keys(s.ctx)
	return r, err
}

// keys types keys, each at another moment of the program's frames, and measures when each is on the screen.
func (t *tuiScreen) keys(ctx context.Context) (list []time.Duration, err error) {
	typed := "> "
	for i := range tuiKeys {
		time.Sleep(time.Duration(5+i*7%23) * time.Millisecond)
		key := string(rune('a' + i%26))
		typed += key
		at := time.Now()
		if _, err := io.WriteString(t.control, key); err != nil {
			return nil, err
		}
		if err := t.await(ctx, typed); err != nil {
			return nil, err
		}
		list = append(list, time.Since(at))
	}
	return list, nil
}

// tuiSteps is the script of the model: an answer of many lines at once, and one that arrives in pieces.
func tuiSteps() string {
	var b strings.Builder
	b.WriteString("conversations:\n- match: fill\n  steps:\n  - chunk: 1000000\n    text: |\n")
	for i := range tuiLines {
		fmt.Fprintf(&b, "      - line %d of the **conversation**\n", i+1)
	}
	b.WriteString("- match: stream\n  steps:\n  - chunk: 8\n    chunk_delay: " +
		(time.Second / tuiDeltas).String() + "\n    text: |\n      begins\n\n")
	for i := range 400 {
		fmt.Fprintf(&b, "      Some **words** of paragraph %d, and `code` in it, so that each line has styles and "+
			"wraps at the width of the terminal.\n\n", i)
	}
	return b.String()
}

// processTime is the CPU time of a process so far, or 0 if the system does not say it; see proc_pid_stat(5).
func processTime(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all Linux systems that Go supports
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before may have blanks
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
