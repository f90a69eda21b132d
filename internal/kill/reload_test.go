package kill

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
)

// TestReload changes the configuration of a running tenon serve. An invalid configuration is reported and has
// no effect. A valid one applies from then on. A run in progress continues without losing its current call. No request
// is refused because of a reload.
func TestReload(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	f := newField(t)
	good, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := f.serve(t)
	hand := func(script string) string {
		return strings.TrimSpace(f.OK(t, "run", "-c", "tenon.yaml", "-q", "--detach", "--model",
			"script:"+script, "go").Out)
	}
	reload := func(text, want string) {
		t.Helper()
		f.WriteFile(t, "tenon.yaml", text)
		if err := s.cmd.Process.Signal(hangup); err != nil {
			t.Fatal(err)
		}
		f.until(t, func() bool { return strings.Contains(s.log(), want) })
	}
	quick := f.WriteFile(t, "quick.yaml", "steps: [{text: done}]\n")
	for range 3 { // each reload replaces the host while requests arrive
		if err := s.cmd.Process.Signal(hangup); err != nil {
			t.Fatal(err)
		}
		hand(quick)
		f.OK(t, "runs", "follow", hand(quick), "-c", "tenon.yaml")
	}
	slow := hand(f.WriteFile(t, "slow.yaml", `steps:
  - calls: [{name: unsafe_slow, arguments: {ms: 4000}}]
  - {text: all done}
`))
	f.begins(t)
	reload(string(good)+"nonsense: true\n", "the configuration is not reloaded, the last good one stays")
	if !strings.Contains(s.log(), "tenon.yaml:") {
		t.Errorf("the log does not contain the position of the error:\n%s", s.log())
	}
	f.WriteFile(t, "tenon.yaml", string(good)) // other commands read it too
	other := f.WriteFile(t, "other.yaml", `steps:
  - expect_tools: [later_echo]
    text: it is here
`)
	reload(strings.Replace(string(good), "tools:\n", `  later: {command: "`+f.Tenon+
		`", args: [testserver, --stdio], include: [echo]}
tools:
  later_echo: {server: later, remote_name: echo}
`, 1), "held back until you agree")
	var proposal struct{ Digest string }
	shown := f.OK(t, "proposals", "show", "reload", "-c", "tenon.yaml", "-o", "json").Out
	if err := json.Unmarshal([]byte(shown), &proposal); err != nil {
		t.Fatal(err, shown)
	}
	f.OK(t, "proposals", "accept", "reload", "--digest", proposal.Digest, "-c", "tenon.yaml")
	f.OK(t, "runs", "follow", hand(other), "-c", "tenon.yaml")
	o := f.OK(t, "runs", "follow", slow, "-c", "tenon.yaml")
	if !strings.Contains(o.Out, "all done") || f.effectsOf(t, slow)["1.0"] != 1 {
		t.Errorf("the run in progress: %s", o)
	}
	if events := f.OK(t, "runs", "events", slow, "-c", "tenon.yaml", "-o", "jsonl").Out; strings.Contains(events,
		`"unknown"`) {
		t.Errorf("its call was interrupted:\n%s", events)
	}
	if err := s.cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	if status, log := s.ended(); status != 0 {
		t.Errorf("status %d:\n%s", status, log)
	}
}
