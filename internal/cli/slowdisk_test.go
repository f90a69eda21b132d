package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestUX4_SlowDisk checks that a file system that hangs does not hold up the chat: a look at it ends in time, and only
// a few looks hang at the same time.
func TestUX4_SlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowDisk
		answers := make(chan struct{})
		hang := func() bool {
			<-answers
			return true
		}
		begun := time.Now()
		for range maxStuck {
			if _, ok := within(t.Context(), &d, tabWait, hang); ok {
				t.Fatal("a call that hangs has a result")
			}
		}
		if took := time.Since(begun); took != maxStuck*tabWait {
			t.Errorf("%d calls took %s, not %s each", maxStuck, took, tabWait)
		}
		begun = time.Now()
		if _, ok := within(t.Context(), &d, tabWait, func() bool { t.Error("called"); return true }); ok {
			t.Error("one more call has a result")
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("one more call waits for %s", took)
		}
		close(answers)
		synctest.Wait()
		if v, ok := within(t.Context(), &d, tabWait, hang); !v || !ok {
			t.Error("no result after the file system answers again")
		}
	})
}

// TestUX4_SlowDiskStopped checks that the end of a context ends a look without a limit.
func TestUX4_SlowDiskStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d slowDisk
		answers := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, ok := within(ctx, &d, 0, func() bool { <-answers; return true }); ok {
			t.Error("a call that hangs has a result")
		}
		close(answers)
	})
}
