package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// rawScreen keeps the bytes that the program writes, and answers like a terminal.
type rawScreen struct {
	mu     sync.Mutex
	all    bytes.Buffer
	answer func(asked []byte) // called with each piece
}

func (r *rawScreen) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.all.Write(b)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(b)
	}
	return len(b), nil
}

func (r *rawScreen) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// TestUX4_OSC11 checks the colours at a terminal that reports its background, late or not at all. The answer is not
// typed into the input.
func TestUX4_OSC11(t *testing.T) {
	const query = "\x1b]11;?"
	for name, tt := range map[string]struct {
		env         map[string]string
		answer      string
		delay       time.Duration
		asks        bool
		has, hasNot string
	}{
		"light":     {nil, "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", 0, true, "38;5;24m", "38;5;80m"},
		"dark":      {nil, "\x1b]11;rgb:1e1e/1e1e/1e1e\a", 0, true, "38;5;80m", "38;5;24m"},
		"late":      {nil, "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", time.Second, true, "38;5;24m", "38;5;80m"},
		"no answer": {nil, "", 0, true, "\x1b[36m", "38;5;"},
		"no colour": {map[string]string{"NO_COLOR": "1"}, "", 0, false, "\x1b[1m", "36m"},
		"tmux":      {map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", 0, true, "38;5;24m", "38;5;80m"},
		"linux":     {map[string]string{"TERM": "linux"}, "", 0, false, "\x1b[36m", "38;5;"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"TMUX", "COLORTERM", "NO_COLOR", "CLICOLOR_FORCE"} {
				t.Setenv(variable, "")
			}
			c := openChat(t, 80, 24, "conversations:\n  - match: title\n    steps: [{text: \"# The title\"}]\n  - match: code\n    steps: [{text: \"Some `code`.\"}]\n")
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			c.env = tt.env
			seen := &rawScreen{}
			asked := false
			seen.answer = func(b []byte) {
				if !asked && strings.Contains(seen.String(), query) {
					asked = true
					go func() {
						time.Sleep(tt.delay)
						_, _ = io.WriteString(c.control, tt.answer)
					}()
				}
			}
			c.copyTo(seen)
			c.start(&asking{})
			c.awaits("Ask something.")
			if tt.asks {
				c.awaitsRaw(seen, query)
			}
			c.types("title\r")
			c.awaits("The title", "\n>")
			time.Sleep(2 * tt.delay)
			c.types("code\r")
			c.awaits("Some code.")
			c.awaitsRaw(seen, tt.has)
			if got := strings.Contains(seen.String(), query); got != tt.asks {
				t.Errorf("asked for the background: %v", got)
			}
			if strings.Contains(seen.String(), tt.hasNot) {
				t.Errorf("%q is drawn", tt.hasNot)
			}
			if screen := strings.Join(c.screen.Lines(), "\n"); strings.Contains(screen, "rgb") || strings.Contains(screen, "ffff") {
				t.Errorf("the answer was read as typing:\n%s", screen)
			}
			c.leaves()
		})
	}
}

// awaitsRaw waits until the program has written a text.
func (c *screenChat) awaitsRaw(r *rawScreen, text string) {
	c.t.Helper()
	for range 3000 {
		if strings.Contains(r.String(), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatalf("%q was not written: %q", text, r.String())
}
