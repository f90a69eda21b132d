package pty

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Answer is a text that is typed when the output ends with Prompt.
type Answer struct {
	Prompt string
	Type   string
}

// Config configures the shell of a session.
type Config struct {
	Dir           string
	Env           []string
	Columns, Rows int           // if 0, 100 and 40
	Patience      time.Duration // for one command; if 0, one minute
}

// Session is a shell at a pseudo-terminal. It runs one command after another and keeps its working folder and
// variables.
type Session struct {
	shell    *exec.Cmd
	commands io.WriteCloser
	control  *os.File
	columns  int
	patience time.Duration
	stuck    bool // a command has not ended

	pipes  []*os.File  // of commands in the background
	output chan []byte // from the terminal; closed when it has ended
	reader sync.WaitGroup
}

// mark begins the line that the shell prints after each command. The output of commands never contains this character.
const mark = "\x1e"

// Start starts a shell. Start returns errors.ErrUnsupported if the system has no pseudo-terminals for this package.
func Start(c Config) (*Session, error) {
	c.Columns = cmp.Or(c.Columns, 100)
	c.Rows = cmp.Or(c.Rows, 40)
	c.Patience = cmp.Or(c.Patience, time.Minute)
	control, terminal, err := Open(c.Columns, c.Rows)
	if err != nil {
		return nil, err
	}
	defer terminal.Close()
	s := &Session{shell: exec.Command("bash", "--noprofile", "--norc"), control: control, columns: c.Columns,
		patience: c.Patience, output: make(chan []byte)}
	s.shell.Dir, s.shell.Env = c.Dir, c.Env
	s.shell.ExtraFiles = []*os.File{terminal} // file descriptor 3 of the shell
	s.shell.Stdout, s.shell.Stderr = terminal, terminal
	own(s.shell)
	s.commands, err = s.shell.StdinPipe()
	if err == nil {
		err = s.shell.Start()
	}
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	s.reader.Go(s.read)
	return s, nil
}

func (s *Session) read() {
	defer close(s.output)
	r := bufio.NewReader(s.control)
	for {
		b := make([]byte, 4096)
		n, err := r.Read(b)
		if n > 0 {
			s.output <- b[:n]
		}
		if err != nil {
			return
		}
	}
}

// Run runs a command. It returns the output of the terminal and the exit status. Each answer is typed when the output
// ends with its prompt.
func (s *Session) Run(command string, answers ...Answer) (output string, status int, err error) {
	_, err = fmt.Fprintf(s.commands, "{ %s\n} <&3 >&3 2>&3\n"+
		"__status=$?; printf '\\036%%d\\n' $__status >&3; (exit $__status)\n", command)
	if err != nil {
		return "", 0, err
	}
	end := time.NewTimer(s.patience)
	defer end.Stop()
	var all strings.Builder
	for {
		select {
		case b, ok := <-s.output:
			if !ok {
				return all.String(), 0, errors.New("pty: the shell has ended")
			}
			all.Write(b)
		case <-end.C:
			s.stuck = true
			return all.String(), 0, fmt.Errorf("pty: %q has not ended after %v", command, s.patience)
		}
		text := all.String()
		if before, after, found := strings.Cut(text, mark); found && strings.Contains(after, "\n") {
			status, err := strconv.Atoi(strings.TrimSpace(after))
			return before, status, err
		}
		if len(answers) > 0 && strings.HasSuffix(trim(plain(text)), trim(answers[0].Prompt)) {
			if _, err := io.WriteString(s.control, answers[0].Type+"\r"); err != nil {
				return text, 0, err
			}
			answers = answers[1:]
		}
	}
}

func trim(s string) string { return strings.TrimRight(s, " ") }

// Background starts a command in the background. It returns when shown has returned true for a line of the command's
// output. The output does not appear on the terminal.
func (s *Session) Background(command string, shown func(line string) (done bool)) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.pipes = append(s.pipes, w) // kept open until Close, because the shell opens it by its name
	name := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.Fd())
	lines := make(chan string)
	s.reader.Go(func() {
		defer r.Close()
		defer close(lines)
		for all := bufio.NewScanner(r); all.Scan(); {
			lines <- all.Text()
		}
	})
	out, status, err := s.Run(fmt.Sprintf("%s </dev/null >%s 2>&1 &", command, name))
	if err == nil && status != 0 {
		err = fmt.Errorf("pty: %q does not start: %s", command, out)
	}
	end := time.NewTimer(s.patience)
	defer end.Stop()
	for done := err != nil; !done; {
		select {
		case line := <-lines:
			done = shown(line)
		case <-end.C:
			s.stuck, done = true, true
			err = fmt.Errorf("pty: %q has not printed what was expected after %v", command, s.patience)
		}
	}
	s.reader.Go(func() { // reads the remaining output, because a full pipe would block the command
		for range lines {
		}
	})
	return err
}

// Close ends the shell and all processes that it has started, and waits for them.
func (s *Session) Close() error {
	_, _ = io.WriteString(s.commands, "kill $(jobs -p) 2>/dev/null; wait\nexit 0\n")
	_ = s.commands.Close()
	go func() { // drops the last output of the shell; read ends this loop
		for range s.output {
		}
	}()
	if s.stuck {
		kill(s.shell)
	}
	end := time.AfterFunc(s.patience, func() { kill(s.shell) })
	defer end.Stop()
	err := s.shell.Wait()
	for _, w := range s.pipes {
		_ = w.Close()
	}
	_ = s.control.Close()
	s.reader.Wait()
	return err
}
