//go:build unix

package pty

import (
	"os"
	"os/exec"
	"syscall"
)

// own makes the child start in a new session. The controlling terminal of the session is the terminal, file descriptor
// 3.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3} }

// kill ends the shell and its children.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }

// Attach makes a command that has not started use the terminal for its standard streams, and as the controlling
// terminal of a new session.
func Attach(c *exec.Cmd, terminal *os.File) {
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
