//go:build !unix

package kill

import (
	"os"
	"os/exec"
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup ends a command, which may have ended by itself.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// interrupt ends a process at once where there are no signals.
var interrupt = os.Kill

var terminate = os.Kill

var hangup = os.Kill
