package deepstack_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/tenonhq/tenon/internal/deepstack"
)

// deep calls itself n times, each with a frame of at least a kilobyte, and returns the address of a variable of the
// caller as the last call sees it. The address changes if the stack was copied meanwhile.
//
//go:noinline
func deep(n int, at *byte) uintptr {
	var frame [1024]byte
	if n == 0 {
		return uintptr(unsafe.Pointer(at))
	}
	frame[n] = 1
	p := deep(n-1, at)
	runtime.KeepAlive(&frame)
	return p
}

func TestReserve(t *testing.T) {
	for name, c := range map[string]struct {
		reserve func()
		calls   int
		moved   bool
	}{
		"nothing": {func() {}, 16, true},
		"main":    {deepstack.Main, 40, false},
		"work":    {deepstack.Work, 16, false},
	} {
		t.Run(name, func(t *testing.T) {
			moved := make(chan bool)
			go func() {
				c.reserve()
				var at byte
				before := uintptr(unsafe.Pointer(&at))
				moved <- deep(c.calls, &at) != before
			}()
			if got := <-moved; got != c.moved {
				t.Errorf("the stack was copied: %t, want %t", got, c.moved)
			}
		})
	}
}

// BenchmarkMain measures the cost of Main in a new goroutine.
func BenchmarkMain(b *testing.B) {
	for b.Loop() {
		done := make(chan struct{})
		go func() { deepstack.Main(); close(done) }()
		<-done
	}
}
