package kill

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
)

// TestThreeProcesses runs several processes on one store at the same time: two of them each work on a run, one follows
// a run, one decides about a call in the run of another process, and two decide about the same call.
func TestThreeProcesses(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	f := newField(t)
	t.Run("a decision reaches the working process", func(t *testing.T) { f.decideLive(t) })
	t.Run("the first of two decisions wins", func(t *testing.T) { f.decideTwice(t) })
	t.Run("a run has one owner", func(t *testing.T) { f.oneOwner(t) })
}

// begun is a process that works on a run.
type begun struct {
	run    string
	next   func() (event, bool) // the next line; false after the last one
	finish func() life          // reads the remaining output and waits for the end
	cmd    *exec.Cmd
}

// begin starts a run and returns once it has an id.
func (f *field) begin(t *testing.T, script string) *begun {
	t.Helper()
	cmd := f.Command(t.Context(), "run", "--no-input", "--model", "script:"+script, "-c", "tenon.yaml", "-o",
		"jsonl", "go")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	var said []event
	b := &begun{cmd: cmd, next: func() (event, bool) {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return event{}, false
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		if e.Seq > 0 {
			said = append(said, e)
		}
		return e, true
	}}
	b.finish = sync.OnceValue(func() life {
		for ok := true; ok; {
			_, ok = b.next()
		}
		_ = cmd.Wait() // the status is checked by the caller
		return life{events: said, status: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	})
	t.Cleanup(func() { b.finish() })
	first, ok := b.next()
	if !ok {
		t.Fatalf("the run did not start: %s", b.finish().stderr)
	}
	b.run = first.Run
	return b
}

// until reads lines up to an event with the given kind and step.
func (b *begun) until(t *testing.T, kind, step string) {
	t.Helper()
	for {
		e, ok := b.next()
		if !ok {
			t.Fatalf("no event %s of step %s: %s", kind, step, b.finish().stderr)
		}
		if e.Kind == kind && e.Step == step {
			return
		}
	}
}

type approval struct {
	ID     string `json:"id"`
	Run    string `json:"run"`
	Step   string `json:"step"`
	Server string `json:"server"`
	Remote string `json:"remote_name"`
}

// awaits polls from another process until the run waits for a decision.
func (f *field) awaits(t *testing.T, run string) approval {
	t.Helper()
	for end := time.Now().Add(clitest.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		o := f.OK(t, "approvals", "list", "-c", "tenon.yaml", "-o", "json")
		for _, a := range clitest.Decode[[]approval](t, o) {
			if a.Run == run {
				return a
			}
		}
	}
	t.Fatalf("run %s is never listed in the approvals", run)
	return approval{}
}

// decideLive allows a call from another process while the owner is still making a slow call of the same turn. At the
// same time, a second run works in the same store.
func (f *field) decideLive(t *testing.T) {
	one := f.begin(t, f.WriteFile(t, "live.yaml", `steps:
  - text: both
    calls:
      - {name: unsafe_slow, arguments: {ms: 8000}}
      - {name: unsafe_add, arguments: {a: 20, b: 22}}
  - {expect: "42", text: all done}
`))
	two := f.begin(t, f.WriteFile(t, "other.yaml", `steps:
  - text: one after the other
    calls: [{name: safe_slow, arguments: {ms: 50}}]
  - calls: [{name: safe_slow, arguments: {ms: 50}}]
  - {text: all done}
`))
	one.until(t, "decided", "1.1")
	a := f.awaits(t, one.run)
	if a.Step != "1.1" || a.Server != "unsafe" || a.Remote != "add" {
		t.Errorf("the approval is %+v", a)
	}
	f.OK(t, "approvals", "allow", a.ID, "-c", "tenon.yaml")
	follower := f.OK(t, "runs", "events", "-f", one.run, "-c", "tenon.yaml", "-o", "jsonl")
	for _, b := range []*begun{one, two} {
		l := b.finish()
		if l.status != 0 {
			t.Errorf("run %s ended with status %d:\n%s", b.run, l.status, l.stderr)
		}
		for i, e := range l.events {
			if e.Seq != uint64(i+1) || e.Run != b.run {
				t.Errorf("run %s: event %d of %s is at position %d", b.run, e.Seq, e.Run, i+1)
			}
		}
	}
	seen, own := clitest.Lines[event](t, follower), one.finish().events
	if len(seen) != len(own) {
		t.Fatalf("the follower saw %d events, the owner %d", len(seen), len(own))
	}
	for i := range seen {
		if !same(seen[i], own[i]) {
			t.Errorf("the follower saw %+v, the owner %+v", seen[i], own[i])
		}
	}
}

// decideTwice allows and denies a call at the same time.
func (f *field) decideTwice(t *testing.T) {
	b := f.begin(t, f.WriteFile(t, "asks.yaml", `steps:
  - calls: [{name: unsafe_add, arguments: {a: 20, b: 22}}]
  - {text: all done}
`))
	if l := b.finish(); l.status != 8 {
		t.Fatalf("want a waiting run, got status %d:\n%s", l.status, l.stderr)
	}
	var wg sync.WaitGroup
	outputs := make([]clitest.Output, 2)
	for i, verb := range []string{"allow", "deny"} {
		wg.Go(func() { outputs[i] = f.Run(t, "approvals", verb, b.run+"/1.0", "-c", "tenon.yaml", "-o", "json") })
	}
	wg.Wait()
	if l := f.live(t, 0, "runs", "resume", "--no-input", b.run); l.status != 0 {
		t.Fatalf("the run does not continue, status %d:\n%s", l.status, l.stderr)
	}
	var verdicts []string
	for _, e := range clitest.Lines[event](t, f.OK(t, "runs", "events", b.run, "-c", "tenon.yaml", "-o", "jsonl")) {
		var d struct{ Verdict string }
		if e.Kind == "decision" && json.Unmarshal(e.Data, &d) == nil {
			verdicts = append(verdicts, d.Verdict)
		}
	}
	if len(verdicts) != 1 {
		t.Fatalf("the journal has the decisions %q, want one\n%s\n%s", verdicts, outputs[0], outputs[1])
	}
	did := f.effectsOf(t, b.run)["1.0"]
	if want := map[string]int{"allow": 1, "deny": 0}[verdicts[0]]; did != want {
		t.Errorf("%s won and the call took effect %d times", verdicts[0], did)
	}
}

// oneOwner resumes a run from a second process while the owner is working. The second process must only
// follow the run.
func (f *field) oneOwner(t *testing.T) {
	b := f.begin(t, f.WriteFile(t, "slow.yaml", `steps:
  - calls: [{name: safe_slow, arguments: {ms: 4000}}]
  - {text: all done}
`))
	b.until(t, "decided", "1.0")
	second := f.live(t, 0, "runs", "resume", "--no-input", b.run)
	first := b.finish()
	if first.status != 0 {
		t.Errorf("the owner ended with status %d:\n%s", first.status, first.stderr)
	}
	starts := 0
	for _, e := range clitest.Lines[event](t, f.OK(t, "runs", "events", b.run, "-c", "tenon.yaml", "-o", "jsonl")) {
		if e.Kind == "started" && e.Step == "1.0" && strings.Contains(string(e.Data), `"tool"`) {
			starts++
		}
	}
	if did := f.effectsOf(t, b.run)["1.0"]; starts != 1 || did != 1 || second.status != 0 {
		t.Errorf("the call was started %d times and took effect %d times; the second process ended with status %d:\n%s",
			starts, did, second.status, second.stderr)
	}
}
