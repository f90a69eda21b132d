package transport

import (
	"io"
	"os"
	"os/exec"
)

func group(*exec.Cmd) {}

// end kills the process. Windows has no signal that asks. What the process started
// itself is not reached: that would take a job object.
func end(pid int, kill bool) {
	if !kill {
		return
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may be gone already
	}
}

func tryWriter(io.Writer) func([]byte) int { return nil }

// awaitEnd returns at once: waiting for a process holds a thread here.
func awaitEnd(int) {}
