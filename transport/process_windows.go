package transport

import (
	"io"
	"os"
	"os/exec"
)

func group(*exec.Cmd) {}

// end kills the process. Windows has no signal that asks a process to end. Children of the process survive;
// ending them would require a job object.
func end(pid int, kill bool) {
	if !kill {
		return
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have ended
	}
}

func tryWriter(io.Writer) func([]byte) int { return nil }

// awaitEnd returns at once, because waiting for a process blocks a thread on this system.
func awaitEnd(int) {}
