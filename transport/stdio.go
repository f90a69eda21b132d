package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// StdioConfig configures a server process.
type StdioConfig struct {
	// Command is a path, or a name that is looked up in the PATH of Env, or in the PATH of this process if
	// Env has none. No shell is involved.
	Command string
	Args    []string
	Dir     string // working directory; "" for the current one
	// Env is the complete environment, as KEY=VALUE. Nothing is inherited.
	Env []string
	// MaxMessage bounds one message in bytes. 0 means [DefaultMaxMessage].
	MaxMessage int
	// Encoding is the character encoding of stdin and stdout, see [Encoded]. "" means UTF-8.
	Encoding string
	// Stderr is called with each line that the process writes to stderr, cut at 8 KiB, from one goroutine. It
	// should return quickly. It may be nil. The last 64 KiB are always kept.
	Stderr func(line string)
	Logger *slog.Logger // if nil, nothing is logged
	// Reaper kills the process group if the host dies without closing it. If nil, only the process itself
	// ends, and only on Linux; its children may survive, and each process costs a thread.
	Reaper *Reaper
	// Grace is how long the process may run after its stdin was closed, and TermGrace how long it may run after
	// SIGTERM. Then it is killed. 0 means 1.5 s and 1 s.
	Grace, TermGrace time.Duration
}

// Stdio is a connection to a server process.
type Stdio struct {
	*Lines
	cfg     StdioConfig
	pid     int
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	errlog  ring
	printed ring          // lines of stdout that are not messages
	exited  chan struct{} // closed when the process has ended
	state   *os.ProcessState
	wg      sync.WaitGroup
	once    sync.Once
	closed  chan struct{} // closed when Close begins
}

// DialStdio starts the process. The context bounds only the start; the process lives until Close. Errors have
// code unreachable, or config for an unknown encoding or an empty command.
func DialStdio(ctx context.Context, cfg StdioConfig) (*Stdio, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 1500 * time.Millisecond
	}
	if cfg.TermGrace <= 0 {
		cfg.TermGrace = time.Second
	}
	if st, err := os.Stat(cfg.Dir); cfg.Dir != "" && (err != nil || !st.IsDir()) {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "command '%s' cannot be started: there is no folder %s, its "+
			"working directory", cfg.Command, cfg.Dir)
	}
	path, err := look(cfg)
	if err != nil {
		return nil, err
	}
	code, err := encodingOf(cfg.Encoding)
	if err != nil {
		return nil, err
	}
	var pipes [3][2]*os.File
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closePipes(pipes[:i])
			return nil, tenon.Errorf(tenon.CodeUnreachable, "cannot create a pipe for command '%s': %w",
				cfg.Command, err)
		}
		pipes[i] = [2]*os.File{r, w}
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Dir: cfg.Dir, Env: cfg.Env,
		Stdin: pipes[0][0], Stdout: pipes[1][1], Stderr: pipes[2][1]}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	group(cmd)
	cfg.Reaper.prepare()
	s := &Stdio{cfg: cfg, stdin: pipes[0][1], stdout: pipes[1][0], stderr: pipes[2][0],
		exited: make(chan struct{}), closed: make(chan struct{})}
	started := make(chan error, 1)
	s.wg.Go(func() { s.live(cmd, started) })
	err = <-started
	for _, f := range []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]} {
		_ = f.Close() // the child has its own copies
	}
	if err != nil {
		s.wg.Wait()
		closePipes([][2]*os.File{{pipes[0][1], pipes[1][0]}, {pipes[2][0], nil}})
		return nil, tenon.Errorf(tenon.CodeUnreachable, "command '%s' cannot be started: %w", cfg.Command, cause(err))
	}
	s.cfg.Args, s.cfg.Env = nil, nil // no longer needed; may be large
	s.wg.Go(s.drain)
	r, w := recode(code, newOutlived(s.stdout), s.stdin)
	s.Lines = NewLines(r, w, cfg.MaxMessage)
	return s, nil
}

func closePipes(pipes [][2]*os.File) {
	for _, p := range pipes {
		for _, f := range p {
			if f != nil {
				_ = f.Close() // nothing was written
			}
		}
	}
}

// cause strips the layers of an error that only repeat the command's name.
func cause(err error) error {
	var ee *exec.Error
	if errors.As(err, &ee) {
		err = ee.Err
	}
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func look(cfg StdioConfig) (string, error) {
	name := cfg.Command
	if name == "" {
		return "", tenon.Errorf(tenon.CodeConfig, "no command is configured")
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		if cfg.Dir != "" && !filepath.IsAbs(name) {
			// exec resolves the name against Dir, so this check does the same.
			name = filepath.Join(cfg.Dir, name)
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return "", tenon.Errorf(tenon.CodeUnreachable, "command '%s': %w", cfg.Command, err)
		}
		path, err := exec.LookPath(abs)
		if err != nil {
			return "", tenon.Errorf(tenon.CodeUnreachable, "command '%s' cannot be started: %w", cfg.Command,
				cause(err))
		}
		return path, nil
	}
	dirs := ""
	found := false
	for _, kv := range cfg.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs, found = v, true
		}
	}
	if found && runtime.GOOS != "windows" {
		for _, dir := range filepath.SplitList(dirs) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	} else if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", &tenon.Error{Code: tenon.CodeUnreachable, Err: exec.ErrNotFound,
		Message: fmt.Sprintf("command '%s' not found in PATH", name)}
}

// live starts the process and waits for its end.
func (s *Stdio) live(cmd *exec.Cmd, started chan<- error) {
	ok, err := s.cfg.Reaper.launch(cmd.Start)
	if !ok {
		// Linux ties the death signal to the starting thread, so this goroutine keeps its thread until the
		// process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err = cmd.Start()
	}
	if err != nil {
		started <- err
		return
	}
	process := cmd.Process
	s.pid = process.Pid
	s.cfg.Reaper.add(s.pid)
	started <- nil
	awaitEnd(s.pid)
	s.state, _ = process.Wait() // only this goroutine waits for this child
	end(s.pid, true)            // remaining processes of the group
	s.cfg.Reaper.remove(s.pid)
	// Processes that left the group may keep the pipes open.
	until := time.Now().Add(tailTime)
	for _, f := range []*os.File{s.stdout, s.stderr} {
		_ = f.SetReadDeadline(until) // fails if the file is closed or the system has no deadlines
	}
	close(s.exited)
}

// drain reads stderr until its end.
func (s *Stdio) drain() {
	defer func() { _ = s.stderr.Close() }() // the end was reached
	in := lineReader{src: newOutlived(s.stderr), max: 8 << 10}
	for {
		if line, err := in.next(); !s.logStderr(line, err) {
			return
		}
	}
}

// logStderr records a line of stderr. It reports false at the end of the stream.
func (s *Stdio) logStderr(line []byte, err error) bool {
	var size *jsonrpc.SizeError
	switch {
	case errors.As(err, &size):
		line = append(size.Prefix, "…"...)
	case err != nil:
		return false
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r")
	s.errlog.add(text)
	if s.cfg.Stderr != nil {
		s.cfg.Stderr(text)
	}
	return true
}

// Recv returns the next line of the process's stdout. After its end, the error contains the command, the exit
// status and the last lines of stderr.
func (s *Stdio) Recv(ctx context.Context) ([]byte, error) {
	b, err := s.Lines.Recv(ctx)
	if err != nil { // a separate function keeps the stack of an idle reader small
		err = s.readError(err)
	} else if !startsMessage(b) {
		s.printed.add(strings.TrimRight(strings.ToValidUTF8(string(b[:min(len(b), maxPrinted)]), "\uFFFD"), "\r"))
	}
	return b, err
}

// maxPrinted bounds a stored line of stdout that is not a message, in bytes.
const maxPrinted = 500

// startsMessage reports whether a line begins like a message: a JSON object, or a batch of them.
func startsMessage(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) == 0 || line[0] == '{' || line[0] == '['
}

// Printed returns the last lines of stdout that are not messages. An MCP server writes no such lines, but a program
// that is not an MCP server does, and so does a server that logs to stdout.
func (s *Stdio) Printed() string { return lastWords(s.printed.text()) }

// readError returns the reason why stdout cannot be read.
func (s *Stdio) readError(err error) error {
	var size *jsonrpc.SizeError
	if errors.As(err, &size) {
		return err
	}
	select {
	case <-s.closed:
		return io.EOF
	case <-s.exited:
	case <-time.After(time.Second):
		return fmt.Errorf("command '%s' closed its stdout", s.cfg.Command)
	}
	return s.exitError()
}

// ExitError describes how a server's process ended.
type ExitError struct {
	Command string
	Status  string // "exited with code 3", "was ended by signal: killed"
	Stderr  string // its last three lines, or ""
	Stdout  string // its last three lines of stdout that are not messages, or ""
}

// Error reports the command, the exit status and the last lines of stderr.
func (e *ExitError) Error() string {
	switch {
	case e.Stdout != "" && e.Stderr == "":
		return fmt.Sprintf("command '%s' %s; it printed text to stdout where MCP messages are expected: %s", e.Command,
			e.Status, e.Stdout)
	case e.Stdout != "":
		return fmt.Sprintf("command '%s' %s; its last lines on stderr: %s; it also printed text to stdout where MCP "+
			"messages are expected: %s", e.Command, e.Status, e.Stderr, e.Stdout)
	case e.Stderr == "":
		return fmt.Sprintf("command '%s' %s and wrote nothing to stderr", e.Command, e.Status)
	}
	return fmt.Sprintf("command '%s' %s; its last lines on stderr: %s", e.Command, e.Status, e.Stderr)
}

func (s *Stdio) exitError() error {
	what := s.state.String() // "exit status 3", "signal: killed"
	if s.state.Exited() {
		what = fmt.Sprintf("exited with code %d", s.state.ExitCode())
	} else {
		what = "was ended by " + what
	}
	// drain may be slightly behind the exit.
	for range 20 {
		if s.errlog.len() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return &ExitError{Command: s.cfg.Command, Status: what, Stderr: s.LastWords(), Stdout: s.Printed()}
}

// PID returns the process id, which is also the id of the process group.
func (s *Stdio) PID() int { return s.pid }

// Exited returns a channel that is closed when the process has ended.
func (s *Stdio) Exited() <-chan struct{} { return s.exited }

// Stderr returns the last 64 KiB that the process wrote to stderr.
func (s *Stdio) Stderr() string { return s.errlog.text() }

// Close ends the process and its group: it closes stdin, waits, sends SIGTERM, and finally kills. It takes at
// most about Grace + TermGrace and returns when the process has ended.
func (s *Stdio) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.Lines.Close()
		// Closing the file unblocks a waiting write. Queued messages are written first if the pipe has room;
		// a peer that does not read loses them.
		select {
		case <-s.out.gone:
		case <-time.After(100 * time.Millisecond):
		}
		_ = s.stdin.Close() // nothing to do on error
		for _, step := range []struct {
			wait time.Duration
			kill bool
		}{{s.cfg.Grace, false}, {s.cfg.TermGrace, true}} {
			select {
			case <-s.exited:
			case <-time.After(step.wait):
				end(s.pid, step.kill)
			}
		}
		<-s.exited
		_ = s.stdout.Close() // ends a Recv
		<-s.out.gone
	})
	s.wg.Wait()
	return nil
}

// ring keeps the last 64 KiB of lines.
type ring struct {
	mu    sync.Mutex
	lines []string
	size  int
}

const ringSize = 64 << 10

func (r *ring) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.size += len(line) + 1
	for r.size > ringSize {
		r.size -= len(r.lines[0]) + 1
		r.lines = r.lines[1:]
	}
}

func (r *ring) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// text joins the lines.
func (r *ring) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

var _ jsonrpc.Stream = (*Stdio)(nil)
