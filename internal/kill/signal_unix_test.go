//go:build unix

package kill

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command and all of its group at once. It may have ended by
// itself.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// interrupt is what Ctrl-C sends.
const interrupt = syscall.SIGINT

// terminate is what init systems and kill send.
const terminate = syscall.SIGTERM

// hangup has serve load its configuration again.
const hangup = syscall.SIGHUP
