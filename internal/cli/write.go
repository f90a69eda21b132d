package cli

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
)

// Everything that a verb prints on stdout is written here. A write that fails is the error of the verb. The runtime of
// Go opens /dev/null in place of a stdout that the shell has closed (>&-), so such a write does not fail.

// write sends text to stdout. Hidden characters are escaped; see screen.
func (a *app) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := a.out.Write(b)
	return unwritten(err)
}

// writeBytes sends data to stdout unchanged. It is for JSON from [tenon.EscapeJSON] and for requested files. Text is
// written by write.
func (a *app) writeBytes(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := beneath(a.out).Write(b)
	return unwritten(err)
}

// writeFileBytes sends the bytes of a file to stdout. On a terminal it escapes a text and refuses anything else. The
// argument what names the file in the error.
func (a *app) writeFileBytes(what string, b []byte) error {
	switch {
	case !a.outTTY:
		return a.writeBytes(b)
	case !utf8.Valid(b):
		return tenon.Errorf(tenon.CodeInvalid, "%s contains %d bytes that are not text and cannot be shown on a "+
			"terminal: redirect stdout to a file", safeLine(what), len(b))
	}
	return a.write(b)
}

// unread is the error of a verb whose reader has closed the pipe of stdout. It is not printed: the reader has all that
// it wants.
type unread struct{ err error }

func (u unread) Error() string { return u.err.Error() }
func (u unread) Unwrap() error { return u.err }

// unwritten converts an error of stdout. A reader that has closed its pipe cancels the work. Any other error, such as a
// full disk, is a failure.
func unwritten(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return unread{tenon.Errorf(tenon.CodeCancelled, "stdout cannot be written: %w", err)}
	}
	return tenon.Errorf(tenon.CodeInternal, "stdout cannot be written: %w", err)
}

// noting keeps the first error of a writer. It is for help and completion, which cobra writes without checking errors.
type noting struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (n *noting) Write(b []byte) (int, error) {
	c, err := n.w.Write(b)
	if n.err == nil {
		n.err = err
	}
	return c, err
}

// printText writes text from servers and models, with a line break at its end.
func (a *app) printText(s string) error {
	if s == "" {
		return nil
	}
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return a.writeText(s)
}

// writeText writes text from servers and models. With --raw it is written unescaped, but never to a terminal.
func (a *app) writeText(s string) error {
	if a.unescaped && !a.outTTY {
		return a.writeBytes([]byte(s))
	}
	return a.write([]byte(s))
}

// rawFlag adds --raw to a verb that prints what a server sent.
func rawFlag(a *app, f *pflag.FlagSet) {
	f.BoolVar(&a.unescaped, "raw", false, "do not escape hidden characters if stdout is not a terminal")
}
