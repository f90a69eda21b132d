package kill

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
)

// TestServe submits runs to a tenon serve that is killed at random times and restarted. Every run completes without
// intervention, with the guarantees of TestKill. Two submissions with the same key start only one run.
func TestServe(t *testing.T) {
	t.Parallel()
	f := newField(t)
	s := f.serve(t)
	var runs []string
	for i := range 3 {
		key, model := fmt.Sprint("key", i), models[i%len(models)]
		hand := func() string {
			o := f.Run(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--idempotency-key", key, "--yes", "--model",
				model, "go")
			if o.Status != 0 {
				t.Fatal(o)
			}
			return strings.TrimSpace(o.Out)
		}
		run := hand()
		if again := hand(); again != run {
			t.Errorf("the same key resulted in the runs %s and %s", run, again)
		}
		runs = append(runs, run)
	}
	for i := range 4 {
		time.Sleep(time.Duration(200+300*i) * time.Millisecond)
		killGroup(s.cmd)
		s.ended()
		f.killed++
		s = f.serve(t)
	}
	if again := f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--idempotency-key", "key0", "--yes", "--model",
		models[0], "go"); strings.TrimSpace(again.Out) != runs[0] {
		t.Errorf("after the kills the key belongs to run %s, not %s", again.Out, runs[0])
	}
	for _, run := range runs {
		f.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
		f.check(t, run, nil)
	}
	f.model.check(t)
	if err := s.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := s.ended(); status != 0 || !strings.Contains(log, "is resumed: no process worked on it") {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
	t.Log(f.tally)
}

// TestServeTakesOver kills a run in the terminal. A running tenon serve resumes it.
func TestServeTakesOver(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	f := newField(t)
	s := f.serve(t)
	b := f.begin(t, f.WriteFile(t, "slow.yaml", `steps:
  - calls: [{name: safe_slow, arguments: {ms: 1500}}]
  - {text: all done}
`))
	b.until(t, "decided", "1.0")
	killGroup(b.cmd)
	b.finish()
	f.OK(t, "runs", "follow", b.run, "-c", "tenon.yaml")
	if !f.completed(t, b.run) {
		t.Errorf("run %s is not completed", b.run)
	}
	killGroup(s.cmd)
	s.ended()
}

// serving is a running tenon serve.
type serving struct {
	cmd   *exec.Cmd
	log   func() string // returns the log so far
	ended func() (status int, log string)
}

// serve starts a tenon serve and returns once it is reachable.
func (f *field) serve(t *testing.T) *serving {
	t.Helper()
	return f.background(t, "tenon serve: at work", "serve", "-c", "tenon.yaml")
}

// background starts a command and returns once its log has a text.
func (f *field) background(t *testing.T, ready string, args ...string) *serving {
	t.Helper()
	cmd := f.Command(context.Background(), args...)
	log := &logged{ready: []byte(ready), seen: make(chan struct{})}
	cmd.Stderr = log
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &serving{cmd: cmd, log: log.text, ended: sync.OnceValues(func() (int, string) {
		_ = cmd.Wait() // the status is checked by the caller
		return cmd.ProcessState.ExitCode(), log.text()
	})}
	t.Cleanup(func() {
		killGroup(cmd)
		s.ended()
	})
	select {
	case <-log.seen:
	case <-time.After(clitest.Patience):
		t.Fatalf("tenon %s does not start: %s", args[0], log.text())
	}
	return s
}

// logged is a log that signals when it has a text.
type logged struct {
	ready []byte
	mu    sync.Mutex
	b     bytes.Buffer
	seen  chan struct{}
	once  sync.Once
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(p)
	if bytes.Contains(l.b.Bytes(), l.ready) {
		l.once.Do(func() { close(l.seen) })
	}
	return len(p), nil
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
