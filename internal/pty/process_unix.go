//go:build unix

package pty

import (
	"os/exec"
	"syscall"
)

// own makes the child start in a new session. The controlling terminal of the session is the terminal, file descriptor
// 3.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3} }

// kill ends the shell and its children.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
