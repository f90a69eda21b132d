package kill

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
)

// TestKilledWhileATaskIsAtWork kills the process while the server works on a task. Another process continues
// to poll it. The call is made only once, although it must not be repeated, and its result arrives.
func TestKilledWhileATaskIsAtWork(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	f := newField(t)
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, f.Tenon, "testserver", "--http", "127.0.0.1:0", "--tasks",
		"--effects", f.effects)
	out, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, said)
		_ = server.Wait() // returns an error because it was killed
	})
	line, err := said.ReadString('\n')
	url := regexp.MustCompile(`http://\S+`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q: %v", line, err)
	}
	f.WriteFile(t, "task.yaml",
		fmt.Sprintf("servers:\n  t: {url: %q, include: [later]}\npolicy: {defaults: {approval: never}}\n", url))
	script := f.WriteFile(t, "steps.yaml",
		"steps:\n  - calls: [{name: later, arguments: {ms: 8000}}]\n  - {text: all done}\n")
	cmd := f.Command(context.Background(), "run", "-c", "task.yaml", "--model", "script:"+script, "go")
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	journal := func() (run string, kinds []string) {
		o := f.Run(t, "runs", "events", "-1", "-c", "task.yaml", "-o", "jsonl")
		if o.Status != 0 {
			return "", nil // the task has not started
		}
		for _, e := range clitest.Lines[event](t, o) {
			run = e.Run
			switch e.Kind {
			case "started", "input_required", "answer", "interrupted", "unknown", "result", "done":
				if e.Step != "1" && e.Step != "2" {
					kinds = append(kinds, e.Kind+" "+e.Step)
				}
			}
		}
		return run, kinds
	}
	for end := time.Now().Add(clitest.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, kinds := journal(); strings.Count(strings.Join(kinds, " "), "started") == 2 {
			break
		}
	}
	killGroup(cmd)
	_ = cmd.Wait()
	if o := f.OK(t, "runs", "resume", "-1", "-c", "task.yaml"); !strings.Contains(o.Out, "all done") {
		t.Errorf("the run does not continue\n%s", o)
	}
	run, kinds := journal()
	want := "started 1.0, input_required 1.0, answer 1.0, started 1.0, interrupted 1.0, started 1.0, result 1.0, done "
	if got := strings.Join(kinds, ", "); got != want {
		t.Errorf("journal\n got %s\nwant %s", got, want)
	}
	if n := f.effectsOf(t, run)["1.0"]; n != 1 {
		t.Errorf("the call ran %d times", n)
	}
	if o := f.OK(t, "runs", "show", "-1", "-c", "task.yaml", "-o", "json"); !strings.Contains(o.Out,
		"done for nobody") {
		t.Errorf("no result\n%s", o)
	}
}
