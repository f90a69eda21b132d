//go:build unix

package kill

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a command and its group. It ignores an error, which means that they have ended.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// interrupt is the signal of Ctrl-C.
const interrupt = syscall.SIGINT

// terminate is the default signal of kill and of init systems.
const terminate = syscall.SIGTERM

// hangup makes serve reload its configuration.
const hangup = syscall.SIGHUP
