package kill

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// check compares the journal of an ended run with the observed events and effects.
func (f *field) check(t *testing.T, run string, said []event) {
	t.Helper()
	f.known[run] = true
	journal := clitest.Lines[event](t, f.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl"))
	for i, e := range journal {
		if e.Seq != uint64(i+1) || e.Run != run {
			t.Fatalf("run %s: event %d of run %s is at position %d", run, e.Seq, e.Run, i+1)
		}
	}
	for _, e := range said {
		if e.Seq > uint64(len(journal)) || !same(e, journal[e.Seq-1]) {
			t.Errorf("run %s: event %d (%s of step %s) was observed but is lost", run, e.Seq, e.Kind, e.Step)
		}
	}
	f.events += len(journal)
	f.acked += len(said)
	if last := journal[len(journal)-1]; last.Kind != "done" || !strings.Contains(string(last.Data), "all done") {
		t.Errorf("run %s: the last event is %s %s", run, last.Kind, last.Data)
	}
	f.checkCalls(t, run, journal, leadCallsOfRun)
	child := fmt.Sprintf("%s/%d.3", run, helping)
	f.checkCalls(t, child, clitest.Lines[event](t, f.OK(t, "runs", "events", child, "-c", "tenon.yaml", "-o", "jsonl")),
		helperCallsOfRun)
	if !slices.ContainsFunc(journal, func(e event) bool { return e.Kind == "compacted" }) {
		t.Errorf("run %s: the conversation was never compacted, so the test is not effective", run)
	}
	f.checkHistory(t, run)
}

// checkCalls compares the calls of a run with the effects that they had on the test server.
func (f *field) checkCalls(t *testing.T, run string, journal []event, want int) {
	t.Helper()
	effects := f.effectsOf(t, run)
	calls := 0
	for step, c := range callsOf(t, run, journal) {
		calls++
		f.checkCall(t, run, step, c, effects[step])
		delete(effects, step)
	}
	if calls != want {
		t.Errorf("run %s: %d calls, want %d", run, calls, want)
	}
	for step, n := range effects {
		t.Errorf("run %s: step %s had %d effects, but is in no journal", run, step, n)
	}
}

func same(a, b event) bool {
	return a.Run == b.Run && a.Seq == b.Seq && a.Step == b.Step && a.Kind == b.Kind && string(a.Data) == string(b.Data)
}

// call is the state of a tool call in the journal.
type call struct {
	tool          string
	starts        int
	ends          []string // result, unknown, failed
	startAfterEnd bool
}

// isRun reports whether the call starts another run.
func (c *call) isRun() bool { return c.tool == agentTool || c.tool == flowTool }

func callsOf(t *testing.T, run string, journal []event) map[string]*call {
	t.Helper()
	calls := map[string]*call{}
	for _, e := range journal {
		if e.Kind == "proposed" {
			var p struct{ Name string }
			if err := json.Unmarshal(e.Data, &p); err != nil {
				t.Fatalf("run %s: %s: %v", run, e.Data, err)
			}
			if calls[e.Step] != nil {
				t.Errorf("run %s: step %s is proposed twice", run, e.Step)
			}
			calls[e.Step] = &call{tool: p.Name}
		}
		c := calls[e.Step]
		if c == nil {
			continue
		}
		switch e.Kind {
		case "started":
			var s struct{ Kind string }
			if err := json.Unmarshal(e.Data, &s); err != nil {
				t.Fatalf("run %s: %s: %v", run, e.Data, err)
			}
			if s.Kind == "tool" || s.Kind == "child" {
				c.starts++
				c.startAfterEnd = c.startAfterEnd || len(c.ends) > 0
			}
		case "result", "unknown":
			c.ends = append(c.ends, e.Kind)
		case "failed":
			var s struct{ Retry bool }
			if err := json.Unmarshal(e.Data, &s); err != nil {
				t.Fatalf("run %s: %s: %v", run, e.Data, err)
			}
			if !s.Retry {
				c.ends = append(c.ends, e.Kind)
			}
		}
	}
	return calls
}

// checkCall compares one call with the effects that it had on the test server.
func (f *field) checkCall(t *testing.T, run, step string, c *call, did int) {
	t.Helper()
	say := func(format string, args ...any) {
		t.Errorf("run %s: step %s (%s, %d starts, ends %v, %d effects): %s", run, step, c.tool, c.starts, c.ends, did,
			fmt.Sprintf(format, args...))
	}
	if len(c.ends) != 1 {
		say("it must end exactly once")
		return
	}
	if c.startAfterEnd {
		say("it was made again after its end")
	}
	if did > c.starts {
		say("more effects than starts")
	}
	switch end := c.ends[0]; {
	case end == "failed":
		say("nothing failed here")
	case (c.tool == safeTool || c.isRun()) && end != "result":
		say("a call that may be repeated must end with its result")
	case c.isRun(): // the called run has its own effects
		f.redone += c.starts - 1
	case c.tool != safeTool && did > 1:
		say("an unsafe call took effect more than once")
	case end == "result" && did == 0:
		say("a result without an effect")
	case end == "unknown":
		f.unknown++
	default:
		f.results++
		f.redone += c.starts - 1
	}
}

// effectsOf counts the effects of a run by step. The test server writes the idempotency key of each call,
// which consists of the ids of run and step.
func (f *field) effectsOf(t *testing.T, run string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(f.effects)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if _, rest, ok := strings.Cut(line, run+"/"); ok {
			rest, _, _ = strings.Cut(rest, " ")
			if step := strings.TrimSpace(rest); !strings.Contains(step, "/") { // otherwise of a called run
				counts[step]++
			}
		}
	}
	return counts
}

// checkHistory reads the conversation at the start of the next question. Each call must have exactly one
// result, in the next message and in order.
func (f *field) checkHistory(t *testing.T, run string) {
	t.Helper()
	type part struct {
		Type         string
		Call, Result *struct{ ID, Name string }
	}
	type message struct {
		Role  string
		Parts []part
	}
	session := clitest.Decode[struct{ Session string }](t, f.OK(t, "runs", "show", run, "-c", "tenon.yaml", "-o",
		"json")).Session
	o := f.OK(t, "sessions", "show", session, "-c", "tenon.yaml", "-o", "json")
	var open []string
	results := 0
	for _, m := range clitest.Decode[struct{ Messages []message }](t, o).Messages {
		var answers []string
		for _, p := range m.Parts {
			switch {
			case p.Result != nil:
				answers = append(answers, p.Result.ID)
			case len(open) > 0 && m.Role != "tool":
				t.Errorf("run %s: the calls %q have no results before a message of %s", run, open, m.Role)
			}
		}
		if m.Role == "tool" {
			if strings.Join(answers, " ") != strings.Join(open, " ") {
				t.Errorf("run %s: the results of %q follow the calls %q", run, answers, open)
			}
			results += len(answers)
			open = nil
		}
		for _, p := range m.Parts {
			if p.Call != nil {
				open = append(open, p.Call.ID)
			}
		}
	}
	if len(open) > 0 || results != leadCallsOfRun {
		t.Errorf("run %s: %d results, but the calls %q have none", run, results, open)
	}
}
