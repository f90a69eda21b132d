package quick_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/tenonhq/tenon/internal/garbage"
	"github.com/tenonhq/tenon/internal/quick"
)

// TestMain reports the settings of a process with the arguments of a command, instead of running the tests.
func TestMain(m *testing.M) {
	if os.Getenv("QUICK_REPORT") != "" {
		os.Stdout.WriteString(strconv.Itoa(runtime.GOMAXPROCS(0)) + " " + strconv.Itoa(debug.SetGCPercent(100)) + " " +
			strconv.Itoa(quick.Processors))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestPrepared(t *testing.T) {
	late := strconv.Itoa(garbage.FirstHeap / (4 << 20) * 100)
	for command, c := range map[string]struct{ collects, gogc string }{
		"run":    {late, ""},
		"serve":  {"150", ""},
		"worker": {"150", ""},
		"":       {late, ""},
		"tools":  {"50", "GOGC=50"},
	} {
		t.Run(command, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], command)
			cmd.Env = append(os.Environ(), "QUICK_REPORT=1", "GOMAXPROCS=3", "GOGC=", c.gogc)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(out), "1 "+c.collects+" 3"; got != want {
				t.Errorf("processors, GC percentage and usual processors are %q, want %q", got, want)
			}
		})
	}
}
