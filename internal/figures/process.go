package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// spent is what one process used. Its children are no part of the CPU time.
type spent struct {
	CPU time.Duration `json:"cpu_ns"`
	// Peak is in bytes: the most that was resident of the process, or of its
	// largest child or of the process that started it, if that is more.
	Peak int64         `json:"peak"`
	Wall time.Duration `json:"wall_ns"`
	Out  string        `json:"out"` // what it wrote to stdout
}

// spent runs a command and returns what it used. It is started by a fresh
// process of this program, because a process begins with the peak of the one
// that started it, and this one may have grown.
func (s *session) spent(command ...string) (spent, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, s.exe, append([]string{"child", "spend"}, command...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return spent{}, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var u spent
	return u, json.Unmarshal(out.Bytes(), &u)
}

// spendChild is the process that [session.spent] starts.
func spendChild(command []string, out io.Writer) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = os.Environ()
	u, err := spend(cmd)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(u)
}
