//go:build !unix

package pty

import (
	"os"
	"os/exec"
)

func own(*exec.Cmd) {}

func kill(c *exec.Cmd) { _ = c.Process.Kill() }

// Attach makes a command use the terminal. This system has no terminals for this package.
func Attach(c *exec.Cmd, terminal *os.File) {
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
}
