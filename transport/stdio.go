package transport

import (
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

// StdioConfig says how to start a server process.
type StdioConfig struct {
	// Command is a path, or a name that is looked up in the PATH of Env (in our
	// own where Env has none). There is no shell.
	Command string
	Args    []string
	Dir     string // working directory; "" is ours
	// Env is the whole environment, as KEY=VALUE. Nothing is inherited.
	Env []string
	// MaxMessage bounds one message in bytes; 0: [DefaultMaxMessage].
	MaxMessage int
	// Encoding is that of stdin and stdout, see [Encoded]; "": UTF-8.
	Encoding string
	// Stderr is called with each line that the process writes to stderr, cut at
	// 8 KiB, from one goroutine. It should not block for long. Nil: only the
	// last 64 KiB are kept.
	Stderr func(line string)
	Logger *slog.Logger // nil discards
	// Reaper ends the process's group should we die without closing. Nil: on
	// Linux the process itself ends with us, what it has started may stay, and each
	// process costs a thread.
	Reaper *Reaper
	// Grace is how long the process may take to end after its stdin was closed,
	// and TermGrace after SIGTERM; then it is killed. 0: 1.5 s and 1 s.
	Grace, TermGrace time.Duration
}

// Stdio is a connection to a server process.
type Stdio struct {
	*Lines
	cfg    StdioConfig
	pid    int
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	errlog ring
	exited chan struct{} // closed when the process was waited for
	state  *os.ProcessState
	wg     sync.WaitGroup
	once   sync.Once
	closed chan struct{} // closed when Close begins
}

// DialStdio starts the process. The context bounds nothing but the start; the
// process lives until Close. Errors have code unreachable.
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
			return nil, tenon.Errorf(tenon.CodeUnreachable, "no pipe for command '%s': %w", cfg.Command, err)
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
		_ = f.Close() // the child has its own
	}
	if err != nil {
		s.wg.Wait()
		closePipes([][2]*os.File{{pipes[0][1], pipes[1][0]}, {pipes[2][0], nil}})
		return nil, tenon.Errorf(tenon.CodeUnreachable, "command '%s' cannot be started: %w", cfg.Command, cause(err))
	}
	s.cfg.Args, s.cfg.Env = nil, nil // they have done their work
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

// cause strips the layers that only repeat the command's name.
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
		return "", tenon.Errorf(tenon.CodeConfig, "no command to start")
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		if cfg.Dir != "" && !filepath.IsAbs(name) {
			// exec resolves it against Dir; so do we for the check.
			name = filepath.Join(cfg.Dir, name)
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return "", tenon.Errorf(tenon.CodeUnreachable, "command '%s': %w", cfg.Command, err)
		}
		path, err := exec.LookPath(abs)
		if err != nil {
			return "", tenon.Errorf(tenon.CodeUnreachable, "command '%s' cannot be started: %w", cfg.Command, cause(err))
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
		// The death signal of Linux is bound to the starting thread, so this one is
		// held for the process's whole life.
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
	s.state, _ = process.Wait() // our child, and nobody else's
	end(s.pid, true)            // what it left behind
	s.cfg.Reaper.remove(s.pid)
	// What left the group may hold the pipes for as long as it likes.
	until := time.Now().Add(tailTime)
	for _, f := range []*os.File{s.stdout, s.stderr} {
		_ = f.SetReadDeadline(until) // closed already, or a system without deadlines
	}
	close(s.exited)
}

// drain reads stderr to its end.
func (s *Stdio) drain() {
	defer func() { _ = s.stderr.Close() }() // read to its end
	in := lineReader{src: newOutlived(s.stderr), max: 8 << 10}
	for {
		if line, err := in.next(); !s.said(line, err) {
			return
		}
	}
}

// said takes a line of stderr. It reports false at the end.
func (s *Stdio) said(line []byte, err error) bool {
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

// Recv returns the next line of the process's stdout. Once it has ended the
// error names the command, the exit status and the last words on stderr.
func (s *Stdio) Recv(ctx context.Context) ([]byte, error) {
	b, err := s.Lines.Recv(ctx)
	if err != nil { // apart, because the stack of an idle reader stays as large as it is
		err = s.readError(err)
	}
	return b, err
}

// readError says why the process can be read no more.
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

// ExitError says how a server's process ended.
type ExitError struct {
	Command string
	Status  string // "exited with code 3", "was ended by signal: killed"
	Stderr  string // its last lines, at most three; "" if it wrote none
}

// Error names the command, how it ended and its last words.
func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("command '%s' %s without a word on stderr", e.Command, e.Status)
	}
	return fmt.Sprintf("command '%s' %s; its last words: %s", e.Command, e.Status, e.Stderr)
}

func (s *Stdio) exitError() error {
	what := s.state.String() // "exit status 3", "signal: killed"
	if s.state.Exited() {
		what = fmt.Sprintf("exited with code %d", s.state.ExitCode())
	} else {
		what = "was ended by " + what
	}
	// The drain may be a moment behind the exit.
	for range 20 {
		if s.errlog.len() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return &ExitError{Command: s.cfg.Command, Status: what, Stderr: s.LastWords()}
}

// PID returns the process id, which is the id of its group too.
func (s *Stdio) PID() int { return s.pid }

// Exited is closed when the process has ended.
func (s *Stdio) Exited() <-chan struct{} { return s.exited }

// Stderr returns the kept end of what the process wrote to stderr, at most 64 KiB.
func (s *Stdio) Stderr() string { return s.errlog.last(1 << 20) }

// LastWords returns the last three lines of that.
func (s *Stdio) LastWords() string { return s.errlog.last(3) }

// Close ends the process and all of its group: it closes stdin, waits, asks
// with SIGTERM, and kills. It takes at most about Grace + TermGrace and returns
// when nothing is left.
func (s *Stdio) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.Lines.Close()
		// Closing the file ends a write that waits. What is queued goes out
		// first where the pipe has room; a peer that does not read gets no more.
		select {
		case <-s.out.gone:
		case <-time.After(100 * time.Millisecond):
		}
		_ = s.stdin.Close() // an error cannot be acted upon
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

// last joins the last n lines.
func (r *ring) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines[max(0, len(r.lines)-n):], "\n")
}

var _ jsonrpc.Stream = (*Stdio)(nil)
