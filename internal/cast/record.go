package cast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon/internal/pty"
)

// Script is a session that Record plays.
type Script struct {
	Name          string // of the files
	Title         string
	Columns, Rows int
	Setup         string // commands of a shell that run before the recording begins
	Steps         []Step
}

// Step is what a person types, and what the person waits for.
type Step struct {
	Type  string        // typed key by key
	Keys  string        // sent at once after it, such as "\r"
	Until string        // a text that appears then; "" is the prompt of the shell
	Show  time.Duration // how long the result is shown; 0 is as long as most people take to read it
}

// The clock of recordings.
const (
	perKey  = 60 * time.Millisecond
	toReply = 350 * time.Millisecond
	toRead  = 1500 * time.Millisecond
	atEnd   = 4 * time.Second
)

// The real clock: a program is at rest if nothing is printed for that long. It is longer than the half second in which
// tenon chat ignores keys after a question. patience limits a step.
const (
	rest     = 700 * time.Millisecond
	patience = time.Minute
)

// Record plays a script in an empty HOME. programs is the folder with the program tenon.
func Record(ctx context.Context, s Script, home, programs string) (r *Recording, err error) {
	control, terminal, err := pty.Open(s.Columns, s.Rows)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(home, "weather")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, errors.Join(err, control.Close(), terminal.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	shell := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-i")
	shell.Dir, shell.WaitDelay = folder, patience
	shell.Env = []string{"HOME=" + home, "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"),
		"TERM=xterm-256color", "TZ=UTC", "LC_ALL=C.UTF-8",
		"PS1=\\[\\e[2m\\]$\\[\\e[0m\\] ", "HISTFILE=", "INPUTRC=/dev/null",
		"TENON_NO_PROBE=1", "TENON_KEYRING=off"}
	pty.Attach(shell, terminal)
	p := &player{control: control, term: pty.NewTerminal(s.Columns, s.Rows),
		recording: &Recording{Title: s.Title, Columns: s.Columns, Rows: s.Rows}}
	if err := shell.Start(); err != nil {
		stop()
		return nil, errors.Join(err, control.Close(), terminal.Close())
	}
	var reader sync.WaitGroup
	reader.Go(p.read)
	err = p.play(ctx, s)
	stop()
	_ = shell.Wait() // it was killed
	err = errors.Join(err, terminal.Close(), control.Close())
	reader.Wait()
	if err != nil {
		return nil, fmt.Errorf("cast: %s: %w", s.Name, err)
	}
	return p.recording, nil
}

// player types a script at a terminal and takes the frames.
type player struct {
	control   *os.File
	term      *pty.Terminal
	printed   atomic.Int64 // time of the last output, in nanoseconds
	recording *Recording
	now       time.Duration
}

func (p *player) read() {
	b := make([]byte, 4096)
	for {
		n, err := p.control.Read(b)
		_, _ = p.term.Write(b[:n]) // a terminal has no errors
		p.printed.Store(time.Now().UnixNano())
		if err != nil { // the shell has ended
			return
		}
	}
}

func (p *player) play(ctx context.Context, s Script) error {
	if err := p.await(ctx, p.prompt, rest); err != nil {
		return err
	}
	if s.Setup != "" {
		// The screen with the commands differs from the empty ones before and after it.
		const end = "; clear"
		if err := p.send(s.Setup + end); err != nil {
			return err
		}
		if err := p.await(ctx, func() bool { return p.echoed(end) }, 0); err != nil {
			return err
		}
		if err := p.send("\r"); err != nil {
			return err
		}
		if err := p.await(ctx, func() bool { return p.prompt() && p.line(0) == "$" }, rest); err != nil {
			return err
		}
	}
	p.take()
	p.now += toRead
	for _, step := range s.Steps {
		if err := p.step(ctx, step); err != nil {
			return fmt.Errorf("%q: %w", step.Type+step.Keys, err)
		}
	}
	p.recording.End = p.now - toRead + atEnd
	return nil
}

func (p *player) step(ctx context.Context, s Step) error {
	for i := range len(s.Type) {
		if err := p.send(s.Type[i : i+1]); err != nil {
			return err
		}
		if err := p.await(ctx, func() bool { return p.echoed(s.Type[:i+1]) }, 0); err != nil {
			return err
		}
		p.take()
		p.now += perKey
	}
	if s.Until != "" && strings.Contains(p.screen(), s.Until) {
		return fmt.Errorf("%q is on the screen before", s.Until)
	}
	if err := p.send(s.Keys); err != nil {
		return err
	}
	reached := p.prompt
	if s.Until != "" {
		reached = func() bool { return strings.Contains(p.screen(), s.Until) }
	}
	if err := p.await(ctx, reached, rest); err != nil {
		return err
	}
	p.now += toReply
	p.take()
	s.Show = cmp.Or(s.Show, toRead)
	p.now += s.Show
	return nil
}

func (p *player) send(keys string) error {
	_, err := io.WriteString(p.control, keys)
	return err
}

// take appends a frame.
func (p *player) take() {
	p.recording.Frames = append(p.recording.Frames, frame(p.term, p.now))
}

func (p *player) screen() string { return strings.Join(p.term.Lines(), "\n") }

func (p *player) line(row int) string { return p.term.Lines()[row] }

// prompt reports whether the shell waits for a command.
func (p *player) prompt() bool {
	row, column, _ := p.term.Cursor()
	return column == len("$ ") && p.line(row) == "$"
}

// echoed reports whether a text is on the screen before the cursor.
func (p *player) echoed(typed string) bool {
	row, column, _ := p.term.Cursor()
	line := []rune(p.line(row) + strings.Repeat(" ", column))
	return strings.HasSuffix(string(line[:column]), typed)
}

// await waits until reached returns true and nothing has been printed for the time quiet.
func (p *player) await(ctx context.Context, reached func() bool, quiet time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for look := time.NewTicker(5 * time.Millisecond); ; {
		if time.Since(time.Unix(0, p.printed.Load())) >= quiet && reached() {
			look.Stop()
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return fmt.Errorf("waited in vain: %w; the screen:\n%s", ctx.Err(), p.screen())
		}
	}
}
