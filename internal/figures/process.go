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

// spent is the resource usage of one process. The CPU time does not include its children.
type spent struct {
	CPU time.Duration `json:"cpu_ns"`
	// Peak is the peak resident memory in bytes, as last read before the end of the process, or 0 if it ended before
	// the first read. The peak that the kernel reports after a wait includes the children that the process waited
	// for, and its parent at the time of the start.
	Peak int64         `json:"peak"`
	Wall time.Duration `json:"wall_ns"`
	Out  string        `json:"out"` // stdout
}

// spent runs a command and returns its resource usage. A new process of this program starts it and reads its state all
// the time, so that this process does not have to.
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

// spendChild is the child process of [session.spent].
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
