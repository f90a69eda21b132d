package cli

import (
	"bytes"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
)

// screen writes to stdout or stderr text that a person reads. It escapes control, direction and invisible characters,
// so that no text of a server or model can hide part of the output. It does so for pipes, too, because they may end at
// a terminal. Commands mark colours with Unicode noncharacters (see paint), and only the screen turns these into escape
// sequences, so other texts cannot set colours. Output that must be exact bytes uses [app.writeBytes] instead.
//
// It is safe for concurrent use.
type screen struct {
	w    io.Writer
	mu   sync.Mutex
	tail []byte // an incomplete character or line break at the end of the last Write
}

// newScreen returns a screen that writes to w. If w is a screen, it returns w.
func newScreen(w io.Writer) *screen {
	if s, ok := w.(*screen); ok {
		return s
	}
	return &screen{w: w}
}

// Write implements [io.Writer].
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := b
	if len(s.tail) > 0 {
		text = append(s.tail, b...)
	}
	whole := len(text) - unfinished(text)
	s.tail = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return len(b), nil
	}
	if _, err := s.w.Write(onScreen(text[:whole])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flush writes the incomplete character at the end of the text, if there is one.
func (s *screen) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail) > 0 {
		_, _ = s.w.Write(onScreen(s.tail))
		s.tail = nil
	}
}

// control writes an escape sequence that moves the cursor.
func (s *screen) control(sequence string) {
	s.flush()
	_, _ = io.WriteString(s.w, sequence) // the next Write reports a closed terminal
}

// clearLine moves to the beginning of the line and clears it (ECMA-48, CR and EL).
const clearLine = "\r\x1b[K"

// unfinished returns the number of bytes at the end of a text that are part of an incomplete character or line break.
func unfinished(b []byte) int {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return 1 // a line feed may follow
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// onScreen escapes hidden characters and turns the noncharacters of paint into escape sequences.
func onScreen(b []byte) []byte {
	if bytes.IndexFunc(b, func(r rune) bool { return r == utf8.RuneError || !isSafe(r) }) < 0 {
		return b
	}
	var out bytes.Buffer
	for len(b) > 0 {
		style := bytes.IndexFunc(b, func(r rune) bool { return styleOf(r) != "" })
		if style < 0 {
			style = len(b)
		}
		out.WriteString(safeText(string(b[:style])))
		if b = b[style:]; len(b) > 0 {
			r, n := utf8.DecodeRune(b)
			out.WriteString("\x1b[" + styleOf(r) + "m")
			b = b[n:]
		}
	}
	return out.Bytes()
}

// firstStyle is the noncharacter of the first style. The styles are U+FDD0 and the following.
const firstStyle = '\ufdd0'

// styles are the parameters of SGR (ECMA-48), in the order of their noncharacters.
var styles = [...]string{"0", dim, bold, red, green, yellow, cyan}

func styleOf(r rune) string {
	if i := int(r - firstStyle); i >= 0 && i < len(styles) {
		return styles[i]
	}
	return ""
}

// paint adds a style to a text if on is true. The text must be safe: a noncharacter in it would be read as a style.
func paint(on bool, style, s string) string {
	if !on || s == "" {
		return s
	}
	for i, known := range styles {
		if known == style {
			return string(firstStyle+rune(i)) + s + string(firstStyle)
		}
	}
	return s
}

// streamOf returns the stream below a screen.
func streamOf(stream any) any {
	if s, ok := stream.(*screen); ok {
		return unstaged(s.w)
	}
	return stream
}

// beneath returns the writer below a screen: for programs that tenon starts on the terminal, and for data.
func beneath(w io.Writer) io.Writer {
	if s, ok := w.(*screen); ok {
		s.flush()
		if t, ok := s.w.(*stage); ok {
			return t.real
		}
		return s.w
	}
	return w
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := streamOf(stream).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// flush writes incomplete characters at the end of the process.
func (a *app) flush() {
	newScreen(a.out).flush()
	newScreen(a.err).flush()
}

// control writes a sequence that moves the cursor to stderr, which is a terminal.
func (a *app) control(sequence string) { newScreen(a.err).control(sequence) }

// jsonLines writes lines of JSON and escapes hidden characters in them. Each line is one call of Write.
type jsonLines struct{ w io.Writer }

// Write implements [io.Writer].
func (j jsonLines) Write(b []byte) (int, error) {
	if _, err := j.w.Write(tenon.EscapeJSON(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}
