package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHolder finds the process that has a lease. The kernel's list of open-file-description locks contains no process
// ids, so the list of the open files of each process is used.
func TestHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	owner, other := mustOpen(t, path, migrations), mustOpen(t, path, migrations)
	release, ok, err := owner.Acquire("run_1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if pid := other.Holder("run_1"); pid != os.Getpid() {
		t.Errorf("RP-27: the holder of run_1 is process %d, want %d", pid, os.Getpid())
	}
	if pid := other.Holder("run_2"); pid != 0 {
		t.Errorf("RP-27: process %d has a lease that nobody has", pid)
	}
	release()
	if pid := other.Holder("run_1"); pid != 0 {
		t.Errorf("RP-27: process %d has a lease that was released", pid)
	}
}
