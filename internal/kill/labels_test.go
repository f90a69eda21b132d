package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplicas_Labels starts two processes of tenon serve with one configuration, in which a label restricts the server
// to the first process. While the first process is away, the second one does not continue a run that needs the server,
// and shows the reason. A decision made in the second process takes effect when the first one is back and continues the
// run.
func TestReplicas_Labels(t *testing.T) {
	a := newField(t)
	a.inPostgres(t, fmt.Sprintf("labels_%d", os.Getpid()))
	path := filepath.Join(a.Dir, "tenon.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	labelled := strings.Replace(string(text), "    include:", "    replica: lab\n    include:", 1)
	a.WriteFile(t, "tenon.yaml", labelled+"serve: {replica: [\"${TENON_REPLICA:-}\"]}\n")
	b := a.replica(t)
	a.Env = append(a.Env, "TENON_REPLICA=lab")
	first, second := a.serve(t), b.serve(t)

	const where = "server 'safe' is used by replicas with the label 'lab'"
	if o := b.OK(t, "servers", "list", "-c", "tenon.yaml"); !strings.Contains(o.ErrOut, where) {
		t.Errorf("servers list does not say where the server is used:\n%s", o)
	}
	if o := a.OK(t, "servers", "list", "-c", "tenon.yaml"); strings.Contains(o.ErrOut, where) {
		t.Errorf("the replica with the label leaves the server to others:\n%s", o)
	}
	if o := b.Run(t, "doctor", "-c", "tenon.yaml"); !strings.Contains(o.Out, "not used here: "+where) {
		t.Errorf("doctor does not say where the server is used:\n%s", o.Out)
	}
	if o := b.Run(t, "tools", "call", "safe_slow", "ms=1", "-c", "tenon.yaml"); o.Status == 0 {
		t.Errorf("a replica without the label calls the tool:\n%s", o.Out)
	}

	script := a.WriteFile(t, "asks.yaml", `steps:
  - calls: [{name: unsafe_add, arguments: {a: 20, b: 22}}]
  - calls: [{name: safe_slow, arguments: {ms: 10}}]
  - {text: all done}
`)
	o := a.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model", "script:"+script, "go")
	run := strings.TrimSpace(o.Out)
	asked := b.awaits(t, run)
	killGroup(first.cmd)
	first.ended()
	b.OK(t, "approvals", "allow", asked.ID, "-c", "tenon.yaml")
	b.until(t, func() bool {
		return strings.Contains(second.log(), "run "+run+" is not resumed: it needs a server of another replica: "+where)
	})
	if _, err := os.Stat(a.effects); err == nil {
		t.Error("a call was made without the label")
	}
	if b.completed(t, run) {
		t.Error("the run is completed without the label")
	}

	again := a.serve(t)
	b.until(t, func() bool { return b.completed(t, run) })
	if n := a.effectsOf(t, run)["1.0"]; n != 1 {
		t.Errorf("the call took effect %d times", n)
	}
	if strings.Contains(second.log(), "run "+run+" is resumed") {
		t.Errorf("the replica without the label resumed the run:\n%s", second.log())
	}
	for _, s := range []*serving{again, second} {
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 0 {
			t.Errorf("tenon serve ended with status %d:\n%s", status, log)
		}
	}
}
