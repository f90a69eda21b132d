package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/pty"
)

// person is a user at a pseudo-terminal.
type person struct {
	t                 *testing.T
	control, terminal *os.File
	said              spoken
	at                int
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t: t}
	var err error
	if p.control, p.terminal, err = pty.Open(100, 200); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(&p.said, p.control) }()
	t.Cleanup(func() { _, _ = p.terminal.Close(), p.control.Close(); <-done })
	return p
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.control, text); err != nil {
		p.t.Fatal(err)
	}
}

// awaits waits for a text in tenon's output.
func (p *person) awaits(pattern string) { p.t.Helper(); _, p.at = p.said.await(p.t, p.at, pattern) }

// tenon starts a command at the terminal.
func (p *person) tenon(args ...string) (status chan int) {
	status = make(chan int, 1)
	go func() { status <- run(p.t.Context(), args, stdio{p.terminal, p.terminal, p.terminal}) }()
	return status
}

// TestTypeAhead checks that text that was typed before a question does not answer the question.
func TestTypeAhead(t *testing.T) {
	for _, typed := range []string{"y\n", "yes\ny\ny\n", "\ny\n", "y"} {
		t.Run(fmt.Sprintf("SEC-G8_trust_%q", typed), func(t *testing.T) {
			h := newClone(t)
			p := newPerson(t)
			p.types(typed)
			p.awaits("y") // the terminal has it
			status := p.tenon("servers", "test")
			p.awaits("Do you trust this project.*: ")
			p.types("n\n")
			if got := <-status; got != exitDenied {
				t.Errorf("status %d", got)
			}
			if records, err := newApp(stdio{}).trustStore().List(); err != nil || len(records) > 0 {
				t.Errorf("%v, %v", records, err)
			}
			if _, err := os.Stat(h.trace("script")); err == nil {
				t.Error("the script was started")
			}
		})
	}
	for _, typed := range []string{"y\n", "a\n", "s\na\n", "e\n{}\n", "a"} {
		t.Run(fmt.Sprintf("SEC-G8_approval_%q", typed), func(t *testing.T) {
			r := newRaid(t)
			p := newPerson(t)
			p.types(typed)
			p.awaits(typed[:1])
			status := p.tenon("-c", "tenon.yaml", "run", "--model", "script:add.yaml", "go")
			p.awaits(`\[e\]dit.*: `)
			p.types("n\n")
			if got := <-status; got != exitOK {
				t.Errorf("status %d", got)
			}
			if n := r.calls("effects"); n > 0 {
				t.Errorf("the server was called %d times, nobody agreed", n)
			}
			r.ask(exitWaiting, "add.yaml") // no grant is left
		})
	}
}

// TestTypeAheadOfARead checks that bytes that a pending read received before a question do not answer the question. A
// complete line that waits for the prompt stays there.
func TestTypeAheadOfARead(t *testing.T) {
	p := newPerson(t)
	a := newApp(stdio{p.terminal, p.terminal, p.terminal})
	a.look()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.lines.next(now); err == nil { // leaves a read behind
		t.Fatal("a line")
	}
	p.types("a\ny\n")
	for end := time.Now().Add(time.Minute); len(a.lines.got) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was read")
		}
	}
	a.lines.unread("for later", nil)
	answer := make(chan string, 1)
	go func() { text, _ := a.ask(t.Context(), "May I? "); answer <- text }()
	p.awaits(`May I\? `)
	p.types("no\n")
	if got := <-answer; got != "no" {
		t.Errorf("SEC-G8: the answer is %q", got)
	}
	if text, err := a.lines.next(t.Context()); text != "for later" || err != nil {
		t.Errorf("the prompt gets %q, %v", text, err)
	}
}

// TestLogsOfQuestions checks that no log line is printed into an open question.
func TestLogsOfQuestions(t *testing.T) {
	p := newPerson(t)
	a := newApp(stdio{p.terminal, p.terminal, p.terminal})
	a.look()
	cfg, err := a.load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := a.logger(cfg)
	log.Warn("before the question")
	p.awaits("before the question")
	answer := make(chan bool, 1)
	go func() { yes, _ := a.yesOrNo(t.Context(), "May I? "); answer <- yes }()
	p.awaits(`May I\? `)
	for i := range heldLines + 3 {
		log.Warn("MCP server says", "data", fmt.Sprintf("Trust me: %d", i))
	}
	p.types("what\n")
	p.awaits("answer y or n")
	p.awaits(`May I\? `)
	p.said.mu.Lock()
	text := p.said.text.String()
	p.said.mu.Unlock()
	if strings.Contains(text[:strings.LastIndex(text, "May I?")], "Trust me") {
		t.Errorf("SEC-G8: in the question:\n%s", text)
	}
	p.types("y\n")
	p.awaits("Trust me: 0\\b")
	p.awaits(fmt.Sprintf("Trust me: %d", heldLines-1))
	p.awaits("3 lines of the log dropped")
	if !<-answer {
		t.Error("no")
	}
	log.Warn("after the question")
	p.awaits("after the question")
}
