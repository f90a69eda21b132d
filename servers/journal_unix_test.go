//go:build unix

package servers

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestJournalHoldsNobodyUp uses a log file that blocks: a pipe that nobody reads. It must delay neither the server nor
// a request for its status.
func TestJournalHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(dir, "slow")
	if err := syscall.Mkfifo(j.path, 0o600); err != nil {
		t.Fatal(err)
	}
	j.add("stderr", "one")
	writes := make(chan struct{})
	go func() {
		defer close(writes)
		j.flush() // until somebody reads the pipe
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if j.file.TryLock() {
			j.file.Unlock()
		} else {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody writes")
		}
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		j.add("stderr", "two")
	}()
	select {
	case <-said:
	case <-time.After(10 * time.Second):
		t.Error("a line waits for the disk")
	}
	fd, err := syscall.Open(filepath.Clean(j.path), syscall.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	<-writes
	<-said
	j.close()
}
