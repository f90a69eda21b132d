package kill

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// TestKillBudget lets two concurrent runs draw on a daily budget until it is used up, and kills them. Despite
// the kills, the number of finished calls must not exceed the budget.
func TestKillBudget(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	kills := 2
	if s := os.Getenv(envKill); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n / 5
	}
	f := newField(t)
	conf, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	limit := 40 * kills // large enough to last while processes are killed
	f.WriteFile(t, "tenon.yaml", strings.Replace(string(conf), fmt.Sprint(dayCalls), fmt.Sprint(limit), 1))
	script := f.WriteFile(t, "spends.yaml", `steps:
  - calls: [{name: unsafe_slow, arguments: {ms: 10}}, {name: safe_slow, arguments: {ms: 20}},
      {name: unsafe_slow, arguments: {ms: 30}}]
  - calls: [{name: safe_slow, arguments: {ms: 5}}, {name: unsafe_slow, arguments: {ms: 15}}]
  - {text: all done}
`)
	for round := 0; !t.Failed(); round++ {
		if round > 20*kills {
			t.Fatal("the budget is never used up")
		}
		beside := f.begin(t, script)
		over := f.spend(t, script, kills)
		over = beside.finish().status == 6 || over
		if over {
			break
		}
	}
	if f.killed == 0 {
		t.Error("nothing was killed")
	}
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(f.Dir, ".tenon", "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // opened for reading only
	rows, err := st.Runs(t.Context(), store.RunFilter{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !row.State.Ended() {
			f.live(t, 0, "runs", "resume", "--no-input", row.ID)
		}
		journal := clitest.Lines[event](t, f.OK(t, "runs", "events", row.ID, "-c", "tenon.yaml", "-o", "jsonl"))
		effects := f.effectsOf(t, row.ID)
		for step, c := range callsOf(t, row.ID, journal) {
			if c.starts > 0 {
				f.checkCall(t, row.ID, step, c, effects[step])
			}
		}
	}
	balances, err := st.Balances(t.Context(), "day/")
	if err != nil {
		t.Fatal(err)
	}
	used := int64(0)
	for _, b := range balances {
		if strings.HasSuffix(b.Key, "/tool_calls") {
			used += b.Used
		}
		if b.Reserved != 0 {
			t.Errorf("no process is running, but %d of %s is reserved", b.Reserved, b.Key)
		}
	}
	if f.results > limit || used > int64(limit) || used < int64(f.results) {
		t.Errorf("%d calls ended, %d are counted, the budget is %d: %+v", f.results, used, limit, balances)
	}
	t.Logf("%d runs, %d kills: %d finished calls and %d unknown, %d counted, with a budget of %d", len(rows), f.killed,
		f.results, f.unknown, used, limit)
}

// spend drives a run to its end with kills at random times. It reports whether the budget was used up.
func (f *field) spend(t *testing.T, script string, kills int) (over bool) {
	t.Helper()
	args := []string{"run", "--no-input", "--model", "script:" + script, "go"}
	for range kills + 100 { // on a slow machine, one run may need all kills
		var after time.Duration
		if f.killed < kills {
			after = time.Millisecond + rand.N(150*time.Millisecond)
		}
		l := f.live(t, after, args...)
		switch {
		case l.status != -1:
			return l.status == 6
		case len(l.events) > 0:
			args = []string{"runs", "resume", "--no-input", l.events[0].Run}
		}
		f.killed++
		// The run has failed at the limit, so there is nothing to resume.
		if len(l.events) > 0 && f.state(t, l.events[0].Run) == "failed" {
			return true
		}
	}
	t.Fatal("a run does not end")
	return false
}
