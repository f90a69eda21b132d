package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// lineEditor reads the lines of chat at a terminal: with cursor keys, the lines of
// before, and completion by Tab. The terminal is raw only while a line is read, so that
// Ctrl-C means to the rest of the program what it always does.
type lineEditor struct {
	term *term.Terminal
	keys *keys
	fd   int // of the terminal; -1: what is read is no terminal's
}

// errInterrupted is Ctrl-C while a line is read.
var errInterrupted = errors.New("interrupted")

// newEditor returns the editor of chat's lines; nil where the terminal is none that can
// be led.
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
	}{e.keys, a.err}, a.errStyle(bold, "> "))
	e.term.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		c := complete(e.keys.ctx, line[:pos])
		if c.note != "" {
			_, _ = io.WriteString(e.term, c.note+"\n") // above the line
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

// keys is what is typed, as the editor reads it.
type keys struct {
	lines *lineReader
	ctx   context.Context // of the line that is read
}

// The keys that mean something to us.
const keyCtrlC = 3

// Read implements [io.Reader].
func (k *keys) Read(p []byte) (int, error) {
	if len(k.lines.buf) == 0 {
		if err := k.lines.more(k.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, k.lines.buf)
	if i := bytes.IndexByte(p[:n], keyCtrlC); i >= 0 {
		k.lines.buf = nil // what was typed before it is given up, too
		return 0, errInterrupted
	}
	k.lines.buf = k.lines.buf[n:]
	return n, nil
}
