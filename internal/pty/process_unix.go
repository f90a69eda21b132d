//go:build unix

package pty

import (
	"os/exec"
	"syscall"
)

// own starts the child in a new session, with the terminal, file descriptor 3, as its controlling terminal.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3} }

// kill ends the shell and its children.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
