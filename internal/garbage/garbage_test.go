package garbage_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/garbage"
)

// percent returns how the collector is set.
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
		t.Errorf("GOGC is set, and the collector was changed to %d", percent())
	}
	env["GOGC"] = ""
	// Heaps begin with four megabytes at 100.
	stop := garbage.Late(lookup)
	if percent() != garbage.FirstHeap/(4<<20)*100 {
		t.Errorf("the collector is set to %d", percent())
	}
	if stop(); percent() != 100 {
		t.Errorf("ended before its time, the collector is set to %d", percent())
	}
	garbage.Late(lookup)
	runtime.GC()
	for until := time.Now().Add(time.Minute); percent() != 100; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it is not as it was after the first collection")
		}
		runtime.GC()
	}
}

// BenchmarkLate is what each verb pays for it.
func BenchmarkLate(b *testing.B) {
	for b.Loop() {
		garbage.Late(func(string) (string, bool) { return "", false })()
	}
}
