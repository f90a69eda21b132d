package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// lineEditor reads the lines of chat at a terminal, with cursor keys, history, and completion by Tab. The terminal is
// in raw mode only while a line is read, so that Ctrl-C works as usual in the rest of the program.
type lineEditor struct {
	term *term.Terminal
	keys *keys
	fd   int // file descriptor of the terminal, or -1 if the input is not a terminal
}

// errInterrupted means that the person pressed Ctrl-C while a line was read.
var errInterrupted = errors.New("interrupted")

// newEditor returns the editor of chat's lines, or nil if the terminal does not support line editing.
func (a *app) newEditor(complete func(ctx context.Context, line string) completion) *lineEditor {
	f, ok := a.in.(*os.File)
	if t, _ := a.env("TERM"); !ok || !a.inTTY || !a.errTTY || t == "dumb" || runtime.GOOS == "windows" {
		return nil
	}
	return editorOn(a, int(f.Fd()), complete)
}

func editorOn(a *app, fd int, complete func(ctx context.Context, line string) completion) *lineEditor {
	e := &lineEditor{keys: &keys{lines: a.lines}, fd: fd}
	e.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keys, beneath(a.err)}, string(onScreen([]byte(a.errStyle(bold, "> ")))))
	e.term.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		c := complete(e.keys.ctx, line[:pos])
		if c.note != "" {
			_, _ = io.WriteString(e.term, safeText(c.note)+"\n") // above the line
		}
		return line[:pos-c.back] + c.text + line[pos:], pos - c.back + len(c.text), true
	}
	return e
}

// read returns the next line. The error is io.EOF for Ctrl-D, errInterrupted for Ctrl-C,
// or the context's.
func (e *lineEditor) read(ctx context.Context) (text string, err error) {
	if e.fd >= 0 {
		if w, h, err := term.GetSize(e.fd); err == nil && w > 0 && h > 0 {
			_ = e.term.SetSize(w, h) // it only writes
		}
		before, err := term.MakeRaw(e.fd)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, term.Restore(e.fd, before)) }()
	}
	e.keys.ctx = ctx
	return e.term.ReadLine()
}

// keys is the editor's input.
type keys struct {
	lines *lineReader
	ctx   context.Context // context of the line that is being read
}

const keyCtrlC = 3 // the byte that a terminal sends for Ctrl-C

// Read implements [io.Reader].
func (k *keys) Read(p []byte) (int, error) {
	if len(k.lines.buf) == 0 {
		if err := k.lines.more(k.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, k.lines.buf)
	if i := bytes.IndexByte(p[:n], keyCtrlC); i >= 0 {
		k.lines.buf = nil // also discards the text before Ctrl-C
		return 0, errInterrupted
	}
	k.lines.buf = k.lines.buf[n:]
	return n, nil
}
