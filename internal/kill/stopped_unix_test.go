//go:build unix

package kill

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// TestReplicas_Stopped stops a replica by SIGSTOP for longer than its lease, in the middle of a run. Another replica
// takes the run over and finishes it. The stopped one wakes up, writes nothing into the run, and serves on.
func TestReplicas_Stopped(t *testing.T) {
	a := newField(t)
	a.inPostgres(t, fmt.Sprintf("stopped_%d", os.Getpid()))
	b := a.replica(t)
	first, second := a.serve(t), b.serve(t)
	o := a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", models[0], "go")
	run := strings.TrimSpace(o.Out)
	journal := func() string { return b.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl").Out }
	for end := time.Now().Add(clitest.Patience); strings.Count(journal(), "\n") < 8; {
		if time.Now().After(end) {
			t.Fatal("the run does not begin")
		}
	}
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.killed++
	b.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
	if !strings.Contains(second.log(), "is resumed: no process worked on it") {
		t.Errorf("the run was not taken over:\n%s", second.log())
	}
	before := journal()
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	again := strings.TrimSpace(a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", models[0], "go").Out)
	a.OK(t, "runs", "follow", again, "-c", "tenon.yaml") // the replica that was stopped works again
	if after := journal(); after != before {
		t.Errorf("the journal changed after the stopped replica went on:\n%s\nbefore:\n%s", after, before)
	}
	for _, id := range []string{run, again} {
		b.check(t, id, nil)
	}
	b.model.check(t)
	for _, s := range []*serving{first, second} {
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 0 {
			t.Errorf("tenon serve ended with status %d:\n%s", status, log)
		}
	}
}
