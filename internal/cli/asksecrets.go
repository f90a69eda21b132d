package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/tui"
)

// askSecrets asks for the secrets that have prompt as their source and have no value yet, before anything is started.
// If nobody can be asked, the server or model that needs the secret reports the error.
func (a *app) askSecrets(ctx context.Context, cfg *config.Config) error {
	if !a.canAsk() {
		return nil
	}
	list, err := cfg.Questions()
	if err != nil {
		return err
	}
	for _, q := range list {
		value, err := a.askHidden(ctx, safeLine(q.Text)+": ", q.Hidden)
		if err != nil && !errors.Is(err, tui.ErrNoSecret) {
			return tenon.Errorf(tenon.CodeCancelled, "interrupted")
		}
		if value == "" {
			continue // the server or model that needs it reports the error
		}
		kept, err := cfg.Answer(q, value)
		if err != nil {
			return err
		}
		if !kept {
			a.hint("there is no keyring: the answer holds until this command ends")
		}
	}
	return nil
}

// askHidden asks for a line. If hidden is set and the input is a terminal, the typed text is not shown.
func (a *app) askHidden(ctx context.Context, question string, hidden bool) (string, error) {
	f, ok := a.in.(*os.File)
	if !hidden || !ok || !term.IsTerminal(int(f.Fd())) {
		return a.ask(ctx, question)
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return a.ask(ctx, question)
	}
	defer a.fresh()()
	_, _ = io.WriteString(a.err, strings.TrimSpace(question)+" (hidden; Esc cancels) ")
	text, err := a.lines.hidden(ctx)
	_ = term.Restore(int(f.Fd()), before)
	a.note("")
	return strings.TrimSpace(text), err
}

// The control characters of a line that is typed in raw mode.
const (
	charInterrupt = 0x03 // Ctrl-C
	charEnd       = 0x04 // Ctrl-D
	charBackspace = 0x08
	charKill      = 0x15 // Ctrl-U
	charEscape    = 0x1b
	charDelete    = 0x7f
)

// hidden reads a line from a terminal in raw mode, which shows nothing. Esc cancels it with [tui.ErrNoSecret], and
// Ctrl-C with an error of code cancelled.
func (l *lineReader) hidden(ctx context.Context) (string, error) {
	var text []byte
	for {
		if len(l.buf) == 0 {
			if err := l.more(ctx); err != nil {
				return "", err
			}
		}
		got := l.buf
		l.buf = nil
		for i, c := range got {
			switch {
			case c == '\r' || c == '\n':
				l.buf = got[i+1:]
				return string(text), nil
			case c == charInterrupt:
				return "", tenon.Errorf(tenon.CodeCancelled, "interrupted")
			case c == charEnd && len(text) == 0:
				return "", io.EOF
			case c == charEscape && i == len(got)-1:
				return "", tui.ErrNoSecret
			case c == charEscape: // a key such as an arrow, which sends several characters at once
				got = nil
			case c == charBackspace || c == charDelete:
				_, size := utf8.DecodeLastRune(text)
				text = text[:len(text)-size]
			case c == charKill:
				text = nil
			case c >= ' ' && len(text) < maxStdin:
				text = append(text, c)
			}
			if got == nil {
				break
			}
		}
	}
}
