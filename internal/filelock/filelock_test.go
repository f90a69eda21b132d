package filelock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestFolder checks that a folder is locked by one caller at a time, and that a context ends the wait.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	inside, most := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		inside += n
		most = max(most, inside)
	}
	for range 8 {
		wg.Go(func() {
			unlock, err := Folder(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			time.Sleep(time.Millisecond)
			count(-1)
			unlock()
		})
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d callers had the lock at once", most)
	}

	unlock, err := Folder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Folder(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second lock: %v", err)
	}
}
