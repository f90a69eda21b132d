package mcp

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestListChangedFlood sends changes of a list without a pause. The debounce forwards a bounded number of them and
// never drops the last one. After a pause, it forwards a change at once.
func TestListChangedFlood(t *testing.T) {
	t.Run("SEC-F10_list_changed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // timers call f concurrently
			told := 0
			var last time.Time
			d := &debounce{f: func(string) {
				mu.Lock()
				defer mu.Unlock()
				told, last = told+1, time.Now()
			}}
			began := time.Now()
			for range 100_000 { // for 100 s
				d.call("tools")
				time.Sleep(time.Millisecond)
			}
			said := time.Now()
			synctest.Wait()
			mu.Lock()
			n := told
			mu.Unlock()
			if most := changedBurst + int(time.Since(began)/changedPause) + 1; n > most || n < 20 {
				t.Errorf("f is called %d times within %s, want 20 to %d", n, time.Since(began), most)
			}
			time.Sleep(changedPause)
			synctest.Wait()
			mu.Lock()
			if last.Before(said) {
				t.Errorf("f missed the last change, %s before the end", said.Sub(last))
			}
			mu.Unlock()
			time.Sleep(2 * changedCalm)
			mu.Lock()
			told = 0
			mu.Unlock()
			d.call("tools")
			time.Sleep(changedAfter)
			synctest.Wait()
			mu.Lock()
			if told != 1 {
				t.Errorf("after a calm period one change calls f %d times, want 1", told)
			}
			mu.Unlock()
			d.stop()
		})
	})
}
