package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Only text that is typed after a question is an answer to it. This file drops earlier text, and keeps log lines out of
// open questions.

// fresh prepares the terminal for a question. It drops the text that was typed before, and holds log lines until the
// returned function is called. Lines that were put back for the prompt of chat stay. Input that is not from a terminal
// is not dropped.
func (a *app) fresh() (done func()) {
	release := a.logs.hold()
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return release
	}
	back := a.lines.back
	a.lines.back = nil
	flushInput(f)
	a.lines.drop(time.Now())
	return func() {
		a.lines.back = append(back, a.lines.back...)
		release()
	}
}

// drop drops everything that was read before a time, including the bytes of a read that no caller has received yet.
func (l *lineReader) drop(before time.Time) { l.buf, l.since = nil, before }

// The most log lines and bytes that a question holds back.
const (
	heldLines = 200
	heldBytes = 64 << 10
)

// questionLog writes log lines to w. While a question is open, it holds them: a line in the middle of a question could
// look like a part of it.
type questionLog struct {
	w io.Writer

	mu      sync.Mutex
	open    int // questions
	held    bytes.Buffer
	lines   int // in held
	dropped int // lines beyond the bounds
}

// to sets the writer.
func (l *questionLog) to(w io.Writer) *questionLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
	return l
}

// Write implements [io.Writer]. Each call writes whole lines, as slog does.
func (l *questionLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open == 0:
		return l.w.Write(b)
	case l.lines >= heldLines || l.held.Len()+len(b) > heldBytes:
		l.dropped++
	default:
		l.lines++
		l.held.Write(b)
	}
	return len(b), nil
}

// hold holds log lines until the returned function is called, which writes them.
func (l *questionLog) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open--; l.open > 0 {
			return
		}
		_, _ = l.w.Write(l.held.Bytes()) // an error of stderr has no place to go
		if l.dropped > 0 {
			_, _ = fmt.Fprintf(l.w, "tenon: %s of the log dropped while a question was open\n",
				plural(l.dropped, "line"))
		}
		l.held.Reset()
		l.lines, l.dropped = 0, 0
	})
}
