package kill

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestReload changes the configuration of a tenon serve at work: a broken one is
// told of and changes nothing, a good one holds from then on, and a run that was
// under way goes on without losing the call that it was at.
func TestReload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	f := newField(t)
	good, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := f.serve(t)
	hand := func(script string) string {
		return strings.TrimSpace(f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model", "script:"+script, "go").Out)
	}
	reload := func(text, want string) {
		t.Helper()
		f.WriteFile(t, "tenon.yaml", text)
		if err := s.cmd.Process.Signal(hangup); err != nil {
			t.Fatal(err)
		}
		f.until(t, func() bool { return strings.Contains(s.log(), want) })
	}
	slow := hand(f.WriteFile(t, "slow.yaml", `steps:
  - calls: [{name: unsafe_slow, arguments: {ms: 4000}}]
  - {text: all done}
`))
	f.begins(t)
	reload(string(good)+"nonsense: true\n", "the configuration is not reloaded, the last good one stays")
	if !strings.Contains(s.log(), "tenon.yaml:") {
		t.Errorf("the place of the error is not told:\n%s", s.log())
	}
	f.WriteFile(t, "tenon.yaml", string(good)) // other verbs read it, too
	other := f.WriteFile(t, "other.yaml", `steps:
  - expect_tools: [later_echo]
    text: it is here
`)
	reload(strings.Replace(string(good), "tools:\n", `  later: {command: "`+f.Tenon+`", args: [testserver, --stdio], include: [echo]}
tools:
  later_echo: {server: later, remote_name: echo}
`, 1), "config reloaded")
	f.OK(t, "runs", "follow", hand(other), "-c", "tenon.yaml")
	o := f.OK(t, "runs", "follow", slow, "-c", "tenon.yaml")
	if !strings.Contains(o.Out, "all done") || f.effectsOf(t, slow)["1.0"] != 1 {
		t.Errorf("the run that was under way: %s", o)
	}
	if events := f.OK(t, "runs", "events", slow, "-c", "tenon.yaml", "-o", "jsonl").Out; strings.Contains(events, `"unknown"`) {
		t.Errorf("its call was broken off:\n%s", events)
	}
	if err := s.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := s.ended(); status != 0 {
		t.Errorf("status %d:\n%s", status, log)
	}
}
