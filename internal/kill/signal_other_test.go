//go:build !unix

package kill

import (
	"os"
	"os/exec"
)

// ownGroup does nothing, because there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup kills a command. It ignores an error, which means that the command has ended.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// interrupt kills a process, because there are no signals.
var interrupt = os.Kill

var terminate = os.Kill

var hangup = os.Kill
