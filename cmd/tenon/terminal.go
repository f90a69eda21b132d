package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
)

// look finds out what the streams are.
func (a *app) look() {
	a.inTTY, a.outTTY, a.errTTY = isTerminal(a.in), isTerminal(a.out), isTerminal(a.err)
	a.colours()
}

// colours decides about colour: https://no-color.org and CLICOLOR_FORCE.
func (a *app) colours() {
	_, never := a.env("NO_COLOR")
	force, ok := a.env("CLICOLOR_FORCE")
	always := ok && force != "0"
	t, _ := a.env("TERM")
	on := func(tty bool) bool { return !a.noColor && !never && (always || tty && t != "dumb") }
	a.outColor, a.errColor = on(a.outTTY), on(a.errTTY)
}

// env finds a variable that is set to something.
func (a *app) env(name string) (string, bool) {
	v, ok := a.lookupEnv(name)
	return v, ok && v != ""
}

// canAsk reports whether there is a person to ask.
func (a *app) canAsk() bool { return a.inTTY && a.errTTY && !a.noInput }

// width is that of the terminal in characters.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 100
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// lineReader reads lines without holding up a caller who gives up. A read that
// is under way cannot be stopped; the next call takes what it brings, and the
// goroutine ends with the stream or the process.
type lineReader struct {
	r       *bufio.Reader
	got     chan line
	pending bool
	back    []line // read, and put back for the next caller
}

type line struct {
	text string
	err  error
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReader(r), got: make(chan line, 1)}
}

// next returns the next line without its end. The error is io.EOF at the end of
// the stream, or the context's.
func (l *lineReader) next(ctx context.Context) (string, error) {
	if len(l.back) > 0 {
		got := l.back[0]
		l.back = l.back[1:]
		return got.text, got.err
	}
	if !l.pending {
		l.pending = true
		go func() {
			text, err := l.r.ReadString('\n')
			if text != "" && errors.Is(err, io.EOF) {
				err = nil
			}
			l.got <- line{strings.TrimRight(text, "\r\n"), err}
		}()
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-l.got:
		l.pending = false
		return got.text, got.err
	}
}

// unread puts a line back.
func (l *lineReader) unread(text string, err error) { l.back = append(l.back, line{text, err}) }

// maxStdin bounds a question or parameters that are read from stdin.
const maxStdin = 16 << 20

// stdin reads all of it.
func (a *app) stdin() (string, error) {
	b, err := io.ReadAll(io.LimitReader(a.lines.r, maxStdin+1))
	switch {
	case err != nil:
		return "", tenon.Errorf(tenon.CodeInvalid, "stdin cannot be read: %w", err)
	case len(b) > maxStdin:
		return "", tenon.Errorf(tenon.CodeTooLarge, "stdin holds more than %d bytes", maxStdin)
	case !utf8.Valid(b):
		return "", tenon.Errorf(tenon.CodeInvalid, "stdin is not UTF-8")
	}
	return string(b), nil
}

// ask shows a question on stderr and returns the answer in lower case.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	_, _ = io.WriteString(a.err, question)
	text, err := a.lines.next(ctx)
	if err != nil {
		a.note("")
	}
	return strings.TrimSpace(text), err
}
