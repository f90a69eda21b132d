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
)

// gatewayKills returns the number of kills in a test of the gateway: few in go test, and a tenth of TENON_KILLS in a
// long run, because each kill takes some seconds. It is 100 in make soak.
func gatewayKills(t *testing.T, few int) int {
	t.Helper()
	s := os.Getenv(envKill)
	if s == "" {
		return few
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return max(few, n/10)
}

// TestGW_25_KilledInFlight kills tenon gateway while a server executes a call of a tool that only reads. No call is
// sent twice, though the rules allow a repeat. A call that is in the journal ends there; it ends as unknown if its
// result is missing.
func TestGW_25_KilledInFlight(t *testing.T) {
	t.Run("sent before it is stored", func(t *testing.T) {
		longtest.Skip(t)
		f := newField(t)
		conf, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(conf), "budgets:")
		f.WriteFile(t, "tenon.yaml", text)
		// Half of the kills happen after the call is in the journal, the others at random times.
		killedInFlight(t, f, gatewayKills(t, 4), func(n int) bool { return n%2 == 0 })
	})
	t.Run("counted by a budget", func(t *testing.T) {
		f := newField(t)
		killedInFlight(t, f, gatewayKills(t, 1), func(int) bool { return true })
	})
}

// killedInFlight kills the gateway. If recorded returns true, it waits until the call is in the journal.
func killedInFlight(t *testing.T, f *field, kills int, isRecorded func(n int) bool) {
	t.Helper()
	type row struct {
		ID    string `json:"id"`
		State string `json:"state"`
	}
	known := map[string]bool{}
	fresh := func() (list []row) {
		for _, r := range clitest.Decode[[]row](t, f.OK(t, "runs", "list", "-c", "tenon.yaml", "-o", "json", "--limit", "1000")) {
			if !known[r.ID] {
				list = append(list, r)
			}
		}
		return list
	}
	unknown, untold := 0, 0
	for n := range kills {
		g := f.gateway(t)
		recorded := isRecorded(n)
		ms := 60_000
		if !recorded {
			ms = 50
		}
		g.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"safe_slow","arguments":{"ms":%d}}}`, ms))
		var rows []row
		if recorded {
			for end := time.Now().Add(clitest.Patience); len(rows) == 0 && time.Now().Before(end); {
				rows = fresh()
			}
		} else {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		}
		killGroup(g.cmd)
		_ = g.cmd.Wait()
		if rows = fresh(); len(rows) > 1 || recorded && len(rows) != 1 {
			t.Fatalf("kill %d: runs %+v", n, rows)
		}
		if len(rows) == 0 {
			untold++
			continue
		}
		run := rows[0].ID
		known[run] = true
		if rows[0].State == "working" {
			f.live(t, 0, "runs", "resume", "--no-input", run)
		}
		ends := 0
		for _, e := range clitest.Lines[event](t, f.OK(t, "runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl")) {
			switch e.Kind {
			case "unknown":
				unknown++
				ends++
			case "result":
				ends++
			}
		}
		if got := f.effectsOf(t, run)["1.0"]; ends != 1 || got > 1 || recorded && got != 1 {
			t.Errorf("kill %d: run %s has %d ends, and its call was made %d times", n, run, ends, got)
		}
	}
	if unknown == 0 {
		t.Error("no kill hit a call in flight, so the test is not effective")
	}
	t.Logf("%d unknown, %d killed before the journal had the call, 0 made twice", unknown, untold)
}
