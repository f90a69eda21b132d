package garbage_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/garbage"
)

// percent returns the current GC percentage.
func percent() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

func TestLate(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	env := map[string]string{}
	lookup := func(key string) (string, bool) { v, ok := env[key]; return v, ok }

	env["GOGC"] = "50"
	if garbage.Late(lookup); percent() != 100 {
		t.Errorf("the GC percentage was changed to %d although GOGC is set", percent())
	}
	env["GOGC"] = ""
	// 32 MiB is eight times Go's first heap of 4 MiB at a percentage of 100.
	stop := garbage.Late(lookup)
	if percent() != garbage.FirstHeap/(4<<20)*100 {
		t.Errorf("the GC percentage is %d", percent())
	}
	if stop(); percent() != 100 {
		t.Errorf("after usually, the GC percentage is %d", percent())
	}
	garbage.Late(lookup)
	runtime.GC()
	for until := time.Now().Add(time.Minute); percent() != 100; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the default is not restored after the first collection")
		}
		runtime.GC()
	}
}

func TestSeldom(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	if garbage.Seldom(func(string) (string, bool) { return "50", true }); percent() != 100 {
		t.Errorf("the GC percentage was changed to %d although GOGC is set", percent())
	}
	if garbage.Seldom(func(string) (string, bool) { return "", false }); percent() != 150 {
		t.Errorf("the GC percentage is %d", percent())
	}
}

// BenchmarkLate measures the cost of Late for each command.
func BenchmarkLate(b *testing.B) {
	for b.Loop() {
		garbage.Late(func(string) (string, bool) { return "", false })()
	}
}
