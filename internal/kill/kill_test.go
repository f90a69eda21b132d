// Package kill kills the built binary with SIGKILL while it works on runs. It compares the journals with the
// output of the processes and the effects of their tools.
//
//	test ──kill -9──► tenon run, runs resume ──stdio──► tenon testserver ──► the effects file
//	  └─ afterwards: runs events, runs show, sessions show, and the effects file
//
// The tests of engine/local kill only the engine, many times a second. Here the tests kill the whole program.
// Real servers run as separate processes and observe the death of their host. People's commands are used:
// approvals allow, runs resume. There are ten kills in go test, or TENON_KILLS of them.
package kill

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

const (
	turns   = 12 // turns of a run, each with parallel calls
	asking  = 4  // the turn with a call that needs a decision
	helping = 7  // the turn that calls another agent
	envKill = "TENON_KILLS"

	leadCallsOfRun   = 3*turns + 2
	helperCallsOfRun = 3
)

// The tools of a turn. Both servers run the same program; the configuration marks the tools whose calls may be
// repeated.
const (
	safeTool   = "safe_slow"   // idempotent by configuration
	unsafeTool = "unsafe_slow" // must take effect at most once
	askedTool  = "unsafe_add"  // like unsafe_slow, and requires approval
	agentTool  = "ask_helper"  // another agent, which uses these tools too
)

func TestKill(t *testing.T) {
	t.Parallel()
	newField(t).killMany(t, count(t, envKill, 10))
}

// count returns how many times a test kills or stops a process: the value of the environment variable if it is set,
// otherwise few.
func count(t *testing.T, env string, few int) int {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return few
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killMany kills runs at random times, and resumes them to their end.
func (f *field) killMany(t *testing.T, kills int) {
	t.Helper()
	began := time.Now()
	for f.killed < kills && !t.Failed() {
		f.play(t, kills, []string{"run", "--no-input", "--model", models[f.runs%len(models)], "go"}, f.check)
	}
	f.resumeLost(t, f.check)
	f.model.check(t)
	if f.unknown == 0 && kills >= 100 {
		t.Errorf("no kill hit an unsafe call in flight, so the test is not effective")
	}
	t.Logf("%s: %s, %d requests to the model (each call has one result)", time.Since(began).Round(time.Millisecond),
		f.tally, f.model.bodies)
}

// tally counts the observations.
type tally struct {
	killed, runs, events, acked, results, unknown, redone int
}

func (n tally) String() string {
	return fmt.Sprintf(
		"%d kills, %d runs, %d events (%d acknowledged, 0 lost), %d finished calls (0 repeated), %d unknown, %d safe "+
			"calls made again",
		n.killed, n.runs, n.events, n.acked, n.results, n.unknown, n.redone)
}

// field is a store with its configuration in which runs are killed.
type field struct {
	*clitest.Shell
	tally
	model   *provider
	effects string
	known   map[string]bool // runs with an observed id
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{Shell: clitest.NewShell(t, clitest.Build(t, filepath.Join("..", ".."), "./cmd/tenon"),
		"KEY=sk-test-0123456789"), model: newProvider(t), known: map[string]bool{}}
	f.effects = filepath.Join(f.Dir, "effects")
	f.WriteFile(t, "tenon.yaml", fmt.Sprintf(`version: 1
servers:
  safe: &server
    command: %[1]q
    args: [testserver, --stdio, --effects, %[2]q]
    include: [slow, add]
  unsafe: *server
tools:
  safe_slow: {server: safe, remote_name: slow,
    annotations: {read_only: false, idempotent: true}, policy: {approval: never}}
  unsafe_slow: {server: unsafe, remote_name: slow,
    annotations: {read_only: false, idempotent: false}, policy: {approval: never}}
  unsafe_add: {server: unsafe, remote_name: add,
    annotations: {read_only: false, idempotent: false}, policy: {approval: always}}
  ask_helper: {kind: agent, agent: helper}
models:
  lead: {provider: openai-compatible, model: lead, base_url: "%[3]s/v1", api_key: {env: KEY}}
  lead_anthropic: {provider: anthropic, model: lead, base_url: "%[3]s/v1", api_key: {env: KEY}}
  helper: {provider: openai-compatible, model: helper, base_url: "%[3]s/v1", api_key: {env: KEY}}
agents:
  default: {compaction: {at_tokens: 300, keep_turns: 2, clear_results_at_tokens: 200, keep_results: 1}}
  helper: {model: helper, description: helps}
limits: {max_turns: 20}
budgets: {day: {tool_calls: %[4]d}, session: {turns: 100}}
`, f.Tenon, f.effects, f.model.url, dayCalls))
	return f
}

// dayCalls is a limit that no test reaches. It enables counting.
const dayCalls = 1_000_000

// event is a line of the output of -o jsonl.
type event struct {
	Run  string          `json:"run"`
	Seq  uint64          `json:"seq"`
	Step string          `json:"step"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// models lists the models that the runs use in turn. They have two wire formats.
var models = []string{"lead", "lead_anthropic"}

// life is the output of one process that works on a run, until the process ends or is killed.
type life struct {
	events []event
	status int // -1 if killed
	stderr string
}

// live runs a command and returns its output. If the given time is not zero, it kills the process group after
// that time.
func (f *field) live(t *testing.T, kill time.Duration, args ...string) life {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	cmd := f.Command(ctx, append(args, "-c", "tenon.yaml", "-o", "jsonl")...)
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
	stop := func() bool { return false }
	if kill > 0 {
		stop = time.AfterFunc(kill, func() { killGroup(cmd) }).Stop
	}
	var l life
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break // an incomplete line does not count
		}
		if err != nil {
			t.Fatal(err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if e.Seq > 0 {
			l.events = append(l.events, e)
		}
	}
	stop()
	_ = cmd.Wait() // the status is checked below
	l.status, l.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	if ctx.Err() != nil {
		t.Fatalf("%v hangs:\n%s", args, l.stderr)
	}
	return l
}

// checker compares an ended run with the observed events and effects.
type checker func(t *testing.T, run string, said []event)

// play drives one run to its end with kills at random times.
func (f *field) play(t *testing.T, kills int, args []string, check checker) {
	t.Helper()
	f.runs++
	run := ""
	var said []event
	for range kills + 200 { // on a slow machine, one run may need all kills
		var after time.Duration
		if f.killed < kills {
			after = time.Millisecond + rand.N(450*time.Millisecond)
		}
		l := f.live(t, after, args...)
		said = append(said, l.events...)
		if len(said) > 0 {
			run = said[0].Run
		}
		switch l.status {
		case -1:
			f.killed++
		case 8:
			f.decide(t, run)
		case 0:
			check(t, run, said)
			return
		default:
			if !f.completed(t, run) {
				t.Fatalf("run %s ended with status %d:\n%s", run, l.status, l.stderr)
			}
			check(t, run, said) // the process was killed between the last event of the run and its own exit
			return
		}
		if run != "" {
			args = []string{"runs", "resume", "--no-input", run}
		}
	}
	t.Fatalf("run %s does not end", run)
}

// completed reports whether the run had ended when its process was killed.
func (f *field) completed(t *testing.T, run string) bool {
	t.Helper()
	return f.state(t, run) == "completed"
}

func (f *field) state(t *testing.T, run string) string {
	t.Helper()
	return clitest.Decode[struct{ State string }](t, f.OK(t, "runs", "show", run, "-c", "tenon.yaml", "-o",
		"json")).State
}

// decide allows the calls that a run waits for, from separate processes.
func (f *field) decide(t *testing.T, run string) {
	t.Helper()
	for _, a := range clitest.Decode[[]approval](t, f.OK(t, "approvals", "list", "-c", "tenon.yaml", "-o", "json")) {
		if strings.HasPrefix(a.ID, run+"/") {
			f.OK(t, "approvals", "allow", a.ID, "-c", "tenon.yaml")
		}
	}
}

// resumeLost resumes the runs that were killed before they had printed their id.
func (f *field) resumeLost(t *testing.T, check checker) {
	t.Helper()
	type row struct{ ID, State string }
	o := f.OK(t, "runs", "list", "-n", "100000", "-c", "tenon.yaml", "-o", "json")
	for _, r := range clitest.Decode[[]row](t, o) {
		if f.known[r.ID] || strings.Contains(r.ID, "/") || t.Failed() {
			continue
		}
		f.runs++
		for range 5 {
			l := f.live(t, 0, "runs", "resume", "--no-input", r.ID)
			if l.status == 8 {
				f.decide(t, r.ID)
				continue
			}
			if l.status != 0 {
				t.Fatalf("run %s ended with status %d:\n%s", r.ID, l.status, l.stderr)
			}
			break
		}
		check(t, r.ID, nil)
	}
}
