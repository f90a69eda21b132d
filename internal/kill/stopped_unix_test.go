//go:build unix

package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pause stops a process and waits until all of its threads have stopped, where the system tells.
func pause(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid)) // none where there are no such files
		runs := func(thread string) bool {
			b, err := os.ReadFile(thread)
			_, state, ok := strings.Cut(string(b), ") ") // after the name
			return err == nil && ok && !strings.HasPrefix(state, "T")
		}
		if !slices.ContainsFunc(threads, runs) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the process does not stop")
}

// TestReplicas_Stopped stops a replica by SIGSTOP for longer than its lease, in the middle of a run. Another replica
// takes the run over and finishes it. The stopped replica wakes up, writes nothing into the run, and continues to
// serve. The test repeats this several times with the same processes.
func TestReplicas_Stopped(t *testing.T) {
	a := newField(t)
	a.inPostgres(t, fmt.Sprintf("stopped_%d", os.Getpid()))
	b := a.replica(t)
	first, second := a.serve(t), b.serve(t)
	begin := func() string {
		t.Helper()
		o := a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--yes", "--model", models[0], "go")
		return strings.TrimSpace(o.Out)
	}
	journal := func(run string) string { return b.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl").Out }
	var runs []string
	for range count(t, envPostgresStops, 2) {
		run := begin()
		b.until(t, func() bool { return strings.Count(journal(run), "\n") >= 8 })
		pause(t, first.cmd.Process)
		b.killed++
		b.OK(t, "runs", "follow", run, "-c", "tenon.yaml")
		if !strings.Contains(second.log(), "run "+run+" is resumed: no process worked on it") {
			t.Errorf("the run was not taken over:\n%s", second.log())
		}
		before := journal(run)
		if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		again := begin()
		a.OK(t, "runs", "follow", again, "-c", "tenon.yaml") // the replica that was stopped works again
		if after := journal(run); after != before {
			t.Errorf("the journal changed after the stopped replica went on:\n%s\nbefore:\n%s", after, before)
		}
		runs = append(runs, run, again)
	}
	for _, id := range runs {
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
