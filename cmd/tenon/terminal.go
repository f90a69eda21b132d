package main

import (
	"bytes"
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

// width is that of the terminal in characters; stdout may be a file or a pipe beside it.
func (a *app) width() int {
	for _, stream := range []any{a.out, a.err} {
		if f, ok := stream.(*os.File); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
				return w
			}
		}
	}
	return 100
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// lineReader reads lines, or bytes, without holding up a caller who gives up. A read
// that is under way cannot be stopped; the next caller takes what it brings, and the
// goroutine ends with the stream or the process. It is used by one caller at a time.
type lineReader struct {
	src     io.Reader
	got     chan piece
	pending bool
	buf     []byte // read, and not taken yet
	back    []line // taken, and put back for the next caller
	// whole ends the wait of Read, which has no context of its own; nil: nothing does.
	whole context.Context
}

type piece struct {
	b   []byte
	err error
}

type line struct {
	text string
	err  error
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{src: r, got: make(chan piece, 1)}
}

// more waits until there is more in buf. The error is io.EOF at the end of the stream,
// or the context's.
func (l *lineReader) more(ctx context.Context) error {
	if !l.pending {
		l.pending = true
		go func() {
			b := make([]byte, 4096)
			n, err := l.src.Read(b)
			l.got <- piece{b[:n], err}
		}()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p := <-l.got:
		l.pending = false
		if l.buf = append(l.buf, p.b...); len(p.b) > 0 {
			return nil // an error comes again
		}
		return p.err
	}
}

// next returns the next line without its end. The error is io.EOF at the end of
// the stream, or the context's.
func (l *lineReader) next(ctx context.Context) (string, error) {
	if len(l.back) > 0 {
		got := l.back[0]
		l.back = l.back[1:]
		return got.text, got.err
	}
	for looked := 0; ; {
		if i := bytes.IndexByte(l.buf[looked:], '\n'); i >= 0 {
			text := string(l.buf[:looked+i])
			l.buf = l.buf[looked+i+1:]
			return strings.TrimRight(text, "\r"), nil
		}
		if looked = len(l.buf); looked > maxStdin {
			return "", tenon.Errorf(tenon.CodeTooLarge, "a line holds more than %d bytes", maxStdin)
		}
		err := l.more(ctx)
		if errors.Is(err, io.EOF) && len(l.buf) > 0 {
			text := string(l.buf)
			l.buf = nil
			return strings.TrimRight(text, "\r"), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// hasLine reports whether a whole line is there already.
func (l *lineReader) hasLine() bool { return len(l.back) > 0 || bytes.IndexByte(l.buf, '\n') >= 0 }

// errGivenUp says that nobody waits any more for what stdin has. It ends the verb as a
// signal does, whatever the error became on its way; see [app.main].
var errGivenUp = errors.New("stdin was not read to its end")

// Read implements [io.Reader], for verbs that take all of stdin.
func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.buf) == 0 {
		ctx := l.whole
		if ctx == nil {
			ctx = context.Background()
		}
		if err := l.more(ctx); ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, errGivenUp
		} else if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.buf)
	l.buf = l.buf[n:]
	return n, nil
}

// unread puts a line back.
func (l *lineReader) unread(text string, err error) { l.back = append(l.back, line{text, err}) }

// maxStdin bounds a question or parameters that are read from stdin.
const maxStdin = 16 << 20

// stdin reads all of it.
func (a *app) stdin() (string, error) {
	b, err := io.ReadAll(io.LimitReader(a.lines, maxStdin+1))
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

// readUpTo reads a file that is named on the command line: whoever names a device or the
// wrong file does not lose the memory.
func readUpTo(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = tenon.Errorf(tenon.CodeTooLarge, "%s holds more than %d bytes", file, most)
	}
	return b, err
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
