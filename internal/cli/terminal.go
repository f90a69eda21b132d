package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
)

// look finds out which streams are terminals.
func (a *app) look() {
	a.inTTY, a.outTTY, a.errTTY = isTerminal(a.in), isTerminal(a.out), isTerminal(a.err)
	a.colours()
}

// colours decides whether to use colours: https://no-color.org and CLICOLOR_FORCE.
func (a *app) colours() {
	_, never := a.env("NO_COLOR")
	force, ok := a.env("CLICOLOR_FORCE")
	always := ok && force != "0"
	t, _ := a.env("TERM")
	on := func(tty bool) bool { return !a.noColor && !never && (always || tty && t != "dumb") }
	a.outColor, a.errColor = on(a.outTTY), on(a.errTTY)
}

// env returns an environment variable if it is not empty.
func (a *app) env(name string) (string, bool) {
	v, ok := a.lookupEnv(name)
	return v, ok && v != ""
}

// canAsk reports whether tenon can ask a person in plain lines.
func (a *app) canAsk() bool {
	return a.inTTY && a.errTTY && !a.noInput && (!a.onScreen.Load() || a.lent.Load() > 0)
}

// width is the width of the terminal in characters, even if stdout is a file or a pipe.
func (a *app) width() int {
	if a.columns > 0 {
		return a.columns
	}
	for _, stream := range []any{a.out, a.err} {
		if f, ok := streamOf(stream).(*os.File); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
				return w
			}
		}
	}
	return 100
}

// lineReader reads lines or bytes with a context. A read of the stream cannot be cancelled: after a cancelled call it
// continues in its goroutine, and the next caller gets its bytes. The goroutine ends with the stream or the process.
// Only one goroutine may use a lineReader at a time.
type lineReader struct {
	src     io.Reader
	got     chan piece
	pending bool
	buf     []byte    // read from the stream, not yet returned
	back    []line    // returned, then put back for the next caller
	since   time.Time // earlier input is dropped; see [app.fresh]
	// whole cancels Read, which has no context argument. If nil, Read cannot be cancelled.
	whole context.Context
}

type piece struct {
	b    []byte
	err  error
	when time.Time // the end of the read
}

type line struct {
	text string
	err  error
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{src: r, got: make(chan piece, 1)}
}

// Stat describes the file that the stream is.
func (l *lineReader) Stat() (os.FileInfo, error) {
	f, ok := l.src.(*os.File)
	if !ok {
		return nil, os.ErrInvalid
	}
	return f.Stat()
}

// more waits for more bytes in buf. The error is io.EOF at the end of the stream, or the context's error.
func (l *lineReader) more(ctx context.Context) error {
	if !l.pending {
		l.pending = true
		go func() {
			b := make([]byte, 4096)
			n, err := l.src.Read(b)
			l.got <- piece{b[:n], err, time.Now()}
		}()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p := <-l.got:
		l.pending = false
		if p.when.Before(l.since) && p.err == nil {
			return l.more(ctx) // typed before the question
		}
		l.buf = append(l.buf, p.b...)
		if len(p.b) > 0 {
			return nil // the next call returns the error
		}
		return p.err
	}
}

// next returns the next line without its line break. The error is io.EOF at the end of the stream, or the context's
// error.
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

// hasLine reports whether a complete line is available.
func (l *lineReader) hasLine() bool { return len(l.back) > 0 || bytes.IndexByte(l.buf, '\n') >= 0 }

// errGivenUp reports that a signal ended the wait for stdin. The command ends as after a signal, even if other errors
// wrap this one; see [app.main].
var errGivenUp = errors.New("stdin was not read to its end")

// Read implements [io.Reader], for commands that read all of stdin.
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

// maxStdin limits a question or parameters on stdin, in bytes.
const maxStdin = 16 << 20

// stdin reads stdin to the end.
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

// readUpTo reads a file that is named on the command line. The limit protects against devices and huge files.
func readUpTo(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = tenon.Errorf(tenon.CodeTooLarge, "%s holds more than %d bytes", file, most)
	}
	return b, err
}

// ask shows a question on stderr and returns the answer, without spaces around it. At a terminal, text that was typed
// before the question is no answer.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	defer a.fresh()()
	_, _ = io.WriteString(a.err, question)
	text, err := a.lines.next(ctx)
	if err != nil {
		a.note("")
	}
	return strings.TrimSpace(text), err
}
