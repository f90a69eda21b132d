package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// keyboard reads a terminal through the poller of the Go runtime. Bubble Tea's own reader waits in a blocking system
// call. When that reader passes on a key and waits again, the goroutine for the key can be delayed by 10 to 20 ms,
// until the runtime notices that its processor is blocked (TUI.key: p99 of 25 ms with that reader, 11 ms with this
// one).
//
// Bubble Tea treats the keyboard as a plain reader, so the keyboard sets the mode of the terminal. It enables single
// keys and keeps output processing, because Bubble Tea expects output processing if it does not set the mode itself.
type keyboard struct {
	file   *os.File // opened separately: stdin stays blocking for other programs
	fd     int      // of stdin
	before *term.State
	early  int // bytes still to be read that were typed in lines, before begin: Enter is \n in them
}

// openKeyboard returns the keyboard of a terminal. It returns nil if Bubble Tea has to read the input: if in is not a
// terminal, if the terminal belongs to another user, or if the system cannot open it again or poll it.
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
	if again.SetReadDeadline(time.Time{}) != nil { // the file cannot be polled
		_ = again.Close()
		return nil
	}
	return &keyboard{file: again, fd: int(f.Fd())}
}

// Read implements [io.Reader]. It returns [io.EOF] while the keyboard is paused.
func (k *keyboard) Read(b []byte) (int, error) {
	n, err := k.file.Read(b)
	for i := range b[:min(max(n, 0), k.early)] {
		if b[i] == '\n' {
			b[i] = '\r' // as the terminal sends Enter from now on; \n is Ctrl-J, a line break of a message
		}
	}
	k.early -= min(max(n, 0), k.early)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// begin sets the mode in which the terminal sends each key. Like the other methods, it may be called on nil.
func (k *keyboard) begin() error {
	if k == nil {
		return nil
	}
	k.early = waiting(k.fd)
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

// pause ends reads and restores the mode of the terminal until begin is called again.
func (k *keyboard) pause() {
	if k == nil || k.before == nil {
		return
	}
	_ = k.file.SetReadDeadline(time.Unix(1, 0))
	_ = term.Restore(k.fd, k.before)
	k.before = nil
}

// close restores the terminal and closes the file.
func (k *keyboard) close() {
	if k == nil {
		return
	}
	k.pause()
	_ = k.file.Close()
}
