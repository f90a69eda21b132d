package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
)

// TestKilledWhileAsking kills the process while a server's question is open. The question expires. The call
// ends as unknown, or is repeated if that is safe. A late answer gets an error.
func TestKilledWhileAsking(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	f := newField(t)
	for name, tt := range map[string]struct {
		safe    bool
		effects int
		kinds   []string
	}{
		"unsafe": {false, 1, []string{"question 1.0/q1", "expired 1.0/q1", "unknown 1.0", "done "}},
		"safe": {true, 2, []string{"question 1.0/q1", "expired 1.0/q1", "interrupted 1.0", "question 1.0/q2.1",
			"answer 1.0/q2.1", "result 1.0", "done "}},
	} {
		t.Run(name, func(t *testing.T) {
			config := "old.yaml"
			f.WriteFile(t, config, fmt.Sprintf(`servers:
  old: {command: %q, args: [testserver, --stdio, --era, legacy, --effects, %q], include: [ask_form]}
tools:
  asks: {server: old, remote_name: ask_form, annotations: {read_only: false, idempotent: %v}}
policy: {defaults: {approval: never}}
`, f.Tenon, f.effects, tt.safe))
			script := f.WriteFile(t, name+".yaml", "steps:\n  - calls: [{name: asks}]\n  - {text: all done}\n")
			cmd := f.Command(context.Background(), "run", "-c", config, "--wait", "--model", "script:"+script, name)
			ownGroup(cmd)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var asked approval
			for end := time.Now().Add(clitest.Patience); asked.ID == "" &&
				time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				for _, a := range clitest.Decode[[]approval](t,
					f.OK(t, "approvals", "list", "-c", config, "-o", "json")) {
					asked = a
				}
			}
			killGroup(cmd)
			_ = cmd.Wait()
			if !strings.HasSuffix(asked.ID, "/1.0/q1") {
				t.Fatalf("the question is %+v", asked)
			}
			o := f.Run(t, "approvals", "allow", asked.ID, "-c", config, "--args", `{"name":"Ann"}`)
			if o.Status != 1 || !strings.Contains(o.ErrOut,
				"the question had ended before: the process that asked has ended") {
				t.Errorf("want an error for a late answer\n%s", o)
			}
			f.OK(t, "runs", "resume", asked.Run, "-c", config)
			var kinds []string
			for _, e := range clitest.Lines[event](t, f.OK(t, "runs", "events", asked.Run, "-c", config, "-o",
				"jsonl")) {
				switch e.Kind {
				case "question", "answer", "expired", "unknown", "interrupted", "result", "done":
					kinds = append(kinds, e.Kind+" "+e.Step)
				}
			}
			if got, want := strings.Join(kinds, ", "), strings.Join(tt.kinds, ", "); got != want {
				t.Errorf("journal\n got %s\nwant %s", got, want)
			}
			total := 0
			for _, n := range f.effectsOf(t, asked.Run) {
				total += n
			}
			if total != tt.effects {
				t.Errorf("the call ran %d times, want %d", total, tt.effects)
			}
			var same struct{ Same bool }
			if o := f.OK(t, "runs", "replay", asked.Run, "-c", config, "-o", "json"); json.Unmarshal([]byte(o.Out),
				&same) != nil || !same.Same {
				t.Errorf("the replay differs\n%s", o)
			}
		})
	}
}
