package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// keyboard reads a terminal through the poller of the Go runtime. The reader of Bubble Tea waits in a system call of
// its own. When it passes a key on and waits again, the goroutine for the key can stay on the processor that
// waits, until the runtime notices after 10 to 20 ms (TUI.key: p99 of 25 ms with that reader, 11 ms with this one).
//
// Bubble Tea takes it for a plain reader, so the keyboard sets the mode of the terminal: single keys, but with output
// processing, because Bubble Tea expects that from a terminal whose mode it does not set.
type keyboard struct {
	file   *os.File // opened again: the standard input stays blocking for other programs
	fd     int      // of the process
	before *term.State
}

// openKeyboard returns the keyboard of a terminal, or nil if Bubble Tea has to read it: in is no terminal, belongs to
// another user, or the system has no way to open it again or to poll it.
func openKeyboard(in io.Reader) *keyboard {
	if in == nil {
		in = os.Stdin
	}
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	again, err := reopen(f)
	if err != nil {
		return nil
	}
	if again.SetReadDeadline(time.Time{}) != nil { // not polled
		_ = again.Close()
		return nil
	}
	return &keyboard{file: again, fd: int(f.Fd())}
}

// Read implements [io.Reader]. It returns [io.EOF] while the keyboard is paused.
func (k *keyboard) Read(b []byte) (int, error) {
	n, err := k.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// begin sets the terminal to send each key. It may be called on nil, like the other methods.
func (k *keyboard) begin() error {
	if k == nil {
		return nil
	}
	state, err := term.MakeRaw(k.fd)
	if err != nil {
		return fmt.Errorf("the terminal cannot be set to send single keys: %w", err)
	}
	k.before = state
	if err := mapNewlines(k.fd); err != nil {
		k.pause()
		return fmt.Errorf("the terminal cannot be set to start lines at the left: %w", err)
	}
	return k.file.SetReadDeadline(time.Time{})
}

// pause ends reads and sets the terminal back, until begin.
func (k *keyboard) pause() {
	if k == nil || k.before == nil {
		return
	}
	_ = k.file.SetReadDeadline(time.Unix(1, 0))
	_ = term.Restore(k.fd, k.before)
	k.before = nil
}

// close ends the use of the terminal.
func (k *keyboard) close() {
	if k == nil {
		return
	}
	k.pause()
	_ = k.file.Close()
}
