package kill

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// TestSignals ends processes with signals during various activities. The exit status reflects the signal, and
// the run can be resumed.
func TestSignals(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	f := newField(t)
	slow := f.WriteFile(t, "slow.yaml", `steps:
  - calls: [{name: unsafe_slow, arguments: {ms: 60000}}]
  - {text: all done}
`)
	t.Run("chat during an answer", func(t *testing.T) {
		c := f.chat(t, slow)
		c.say(t, "go")
		run := f.begins(t)
		c.signal(t, terminate)
		if status, stderr := c.ended(); status != 143 ||
			!strings.Contains(stderr, "ended by SIGTERM; go on with: tenon runs resume "+run) {
			t.Errorf("status %d:\n%s", status, stderr)
		}
		f.OK(t, "runs", "resume", run, "-c", "tenon.yaml")
	})
	t.Run("chat at the prompt", func(t *testing.T) {
		c := f.chat(t, f.WriteFile(t, "hello.yaml", "steps: [{text: hello yourself}]\n"))
		c.say(t, "hello")
		f.until(t, func() bool { return strings.Contains(c.out.text(), "hello yourself") })
		c.signal(t, terminate)
		if status, stderr := c.ended(); status != 143 {
			t.Errorf("status %d:\n%s", status, stderr)
		}
	})
	t.Run("twice", func(t *testing.T) {
		b := f.begin(t, slow)
		b.until(t, "started", "1.0")
		for range 2 {
			_ = b.cmd.Process.Signal(terminate) // the process may have ended before the second signal
		}
		if l := b.finish(); l.status != 143 {
			t.Errorf("status %d:\n%s", l.status, l.stderr)
		}
		f.OK(t, "runs", "resume", b.run, "-c", "tenon.yaml")
	})
	t.Run("twice while serve stops", func(t *testing.T) {
		s := f.serve(t)
		run := strings.TrimSpace(f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model",
			"script:"+slow, "go").Out)
		if began := f.begins(t); began != run {
			t.Fatalf("run %s begins, not %s", began, run)
		}
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		f.until(t, func() bool { return strings.Contains(s.log(), "tenon serve: stopping") })
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 130 {
			t.Errorf("status %d:\n%s", status, log)
		}
		f.OK(t, "runs", "resume", run, "-c", "tenon.yaml")
		if events := f.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl").Out; !strings.Contains(events,
			`"kind":"unknown"`) {
			t.Errorf("the interrupted call is not unknown:\n%s", events)
		}
	})
}

// talk is a running tenon chat.
type talk struct {
	in     io.Writer
	out    *logged
	signal func(*testing.T, os.Signal)
	ended  func() (status int, stderr string)
}

func (c *talk) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

// chat starts a tenon chat and keeps its stdin open.
func (f *field) chat(t *testing.T, script string) *talk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	cmd := f.Command(ctx, "chat", "-c", "tenon.yaml", "--model", "script:"+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &talk{in: in, out: &logged{seen: make(chan struct{})}}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = c.out, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.signal = func(t *testing.T, s os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	c.ended = func() (int, string) {
		defer cancel()
		_ = cmd.Wait() // the status is checked by the caller
		return cmd.ProcessState.ExitCode(), stderr.String()
	}
	return c
}

// until waits for an effect of another process.
func (f *field) until(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(clitest.Patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition is never met")
		}
	}
}

// begins waits until the last run is within its first call, and returns its id.
func (f *field) begins(t *testing.T) string {
	t.Helper()
	run := ""
	f.until(t, func() bool {
		o := f.Run(t, "runs", "events", "-1", "-c", "tenon.yaml", "-o", "jsonl")
		if o.Status != 0 {
			return false
		}
		for _, e := range clitest.Lines[event](t, o) {
			run = e.Run
			if e.Kind == "done" {
				return false
			}
			if e.Kind == "started" && e.Step == "1.0" {
				return true
			}
		}
		return false
	})
	return run
}
