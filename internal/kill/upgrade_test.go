package kill

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
)

// nextBuild builds the tenon of a later release: its agent's core has another version, and its schema a further step
// that only adds a column. The step is beside the others, as it would be.
func nextBuild(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for file, change := range map[string][2]string{
		"agent/state.go": {`const Version = "agent@1"`, `const Version = "agent@next"`},
		"store/postgres/schema.go": {"addStarts}\n",
			"addStarts, `\nALTER TABLE @runs ADD COLUMN next text NOT NULL DEFAULT '';\n`}\n"},
	} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), change[0]) != 1 {
			t.Fatalf("%s does not have %q once", file, change[0])
		}
		changed := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(changed, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, filepath.FromSlash(file))] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "tenon")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", list, "-o", program, "./cmd/tenon")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return program
}

// TestReplicas_Upgrade runs tenon serve of this release and of a later one on one database. The later one migrates the
// schema while the other one has a run. Each build continues its own runs, and leaves the runs of the other core alone:
// a run of the later release waits until a process of that release is back.
func TestReplicas_Upgrade(t *testing.T) {
	longtest.Skip(t) // it builds most of tenon once more
	old := newField(t)
	old.inPostgres(t, fmt.Sprintf("upgrade_%d", os.Getpid()))
	next := old.replica(t)
	next.Tenon = nextBuild(t)
	first := old.serve(t)
	script := old.WriteFile(t, "asks.yaml", `steps:
  - calls: [{name: unsafe_add, arguments: {a: 20, b: 22}}]
  - calls: [{name: safe_slow, arguments: {ms: 10}}]
  - {text: all done}
`)
	begin := func(f *field) (run string, asked approval) {
		t.Helper()
		o := f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model", "script:"+script, "go")
		run = strings.TrimSpace(o.Out)
		return run, f.awaits(t, run)
	}
	before, askedBefore := begin(old)
	second := next.serve(t)
	doctor := func(f *field) string {
		o := f.Run(t, "doctor", "-c", "tenon.yaml") // it ends with an error: the models cannot be reached
		for line := range strings.Lines(o.Out) {
			if strings.Contains(line, "store PostgreSQL schema") {
				return line
			}
		}
		t.Fatal(o)
		return ""
	}
	if schemaOf(t, doctor(old)) != schemaOf(t, doctor(next)) {
		t.Errorf("the builds see different schemas:\n%s%s", doctor(old), doctor(next))
	}
	run, asked := begin(next)
	killGroup(second.cmd)
	second.ended()

	next.OK(t, "approvals", "allow", asked.ID, "-c", "tenon.yaml")
	old.OK(t, "approvals", "allow", askedBefore.ID, "-c", "tenon.yaml")
	old.until(t, func() bool { return old.completed(t, before) })
	old.until(t, func() bool {
		return strings.Contains(first.log(), "run "+run+" is not resumed: it was written by \\\"agent@next\\\"") ||
			strings.Contains(first.log(), "run "+run+" is not resumed: it was written by \"agent@next\"")
	})
	if next.completed(t, run) || old.effectsOf(t, run)["1.0"] != 0 {
		t.Error("the earlier release has continued a run of the later one")
	}

	again := next.serve(t)
	next.until(t, func() bool { return next.completed(t, run) })
	for _, id := range []string{before, run} {
		if n := old.effectsOf(t, id)["1.0"]; n != 1 {
			t.Errorf("the call of run %s took effect %d times", id, n)
		}
	}
	if strings.Contains(first.log(), "run "+run+" is resumed") || strings.Contains(again.log(), "run "+before+" is resumed") {
		t.Errorf("a build has resumed a run of the other one:\n%s\n%s", first.log(), again.log())
	}
	if err := first.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := first.ended(); status != 0 {
		t.Errorf("tenon serve ended with status %d:\n%s", status, log)
	}
	first = old.serve(t) // the earlier release starts on the schema of the later one
	last, askedLast := begin(old)
	old.OK(t, "approvals", "allow", askedLast.ID, "-c", "tenon.yaml")
	old.until(t, func() bool { return old.completed(t, last) })
	for _, s := range []*serving{first, again} {
		if err := s.cmd.Process.Signal(interrupt); err != nil {
			t.Fatal(err)
		}
		if status, log := s.ended(); status != 0 {
			t.Errorf("tenon serve ended with status %d:\n%s", status, log)
		}
	}
}

// schemaOf returns the version of the schema in a line of tenon doctor.
func schemaOf(t *testing.T, line string) (version int) {
	t.Helper()
	_, rest, ok := strings.Cut(line, "version ")
	rest, _, _ = strings.Cut(rest, ";")
	if _, err := fmt.Sscan(rest, &version); !ok || err != nil {
		t.Fatalf("no version in %q", line)
	}
	return version
}
