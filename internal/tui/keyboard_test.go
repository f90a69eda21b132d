package tui

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"golang.org/x/term"

	"github.com/tenonhq/tenon/internal/pty"
)

// TestUX4_keyboard pauses and resumes reading from a terminal, as if another program used the terminal meanwhile.
func TestUX4_keyboard(t *testing.T) {
	control, terminal, err := pty.Open(80, 24)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no pseudo-terminals: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer terminal.Close()
	k := openKeyboard(terminal)
	if k == nil {
		if runtime.GOOS == "linux" {
			t.Fatal("no keyboard for a terminal")
		}
		t.Skip("Bubble Tea reads the terminals of this system")
	}
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := k.begin(); err != nil {
			t.Fatal(err)
		}
		if _, err := control.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 8)
		if n, err := k.Read(b); err != nil || string(b[:n]) != "x" {
			t.Fatalf("round %d: a key reads as %q, %v", round, b[:n], err)
		}
		ended := make(chan error)
		go func() {
			_, err := k.Read(make([]byte, 8))
			ended <- err
		}()
		k.pause()
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("round %d: a paused read returns %v, want EOF", round, err)
		}
		after, err := term.GetState(fd)
		if err != nil {
			t.Fatal(err)
		}
		if *after != *before {
			t.Errorf("round %d: the mode of the terminal was not set back", round)
		}
	}
	k.close()
	if _, err := k.Read(make([]byte, 8)); err == nil {
		t.Error("a closed keyboard is read")
	}
}

// TestUX1_typedEarly types two lines and a part of a third one before the keyboard begins: their ends are read as Enter,
// so that they are separate messages. Ctrl-J afterwards is a line break.
func TestUX1_typedEarly(t *testing.T) {
	control, terminal, err := pty.Open(80, 24)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no pseudo-terminals: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer terminal.Close()
	k := openKeyboard(terminal)
	if k == nil {
		if runtime.GOOS == "linux" {
			t.Fatal("no keyboard for a terminal")
		}
		t.Skip("Bubble Tea reads the terminals of this system")
	}
	defer k.close()
	if _, err := control.WriteString("one\rtwo\rthr"); err != nil {
		t.Fatal(err)
	}
	for waiting(int(terminal.Fd())) < len("one\ntwo\n") { // the terminal passes the lines on in its own time
		runtime.Gosched()
	}
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.WriteString("ee\n\r"); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for want := "one\rtwo\rthree\n\r"; len(got) < len(want); {
		b := make([]byte, 5)
		n, err := k.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, b[:n]...); string(got) != want[:min(len(got), len(want))] {
			t.Fatalf("%q is read, want %q", got, want)
		}
	}
}

// TestUX4_keyboardOfPipe checks that an input that is not a terminal is left to Bubble Tea.
func TestUX4_keyboardOfPipe(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	defer w.Close()
	if k := openKeyboard(r); k != nil {
		t.Error("a keyboard for a pipe")
	}
	var none *keyboard
	if err := none.begin(); err != nil {
		t.Error(err)
	}
	none.pause()
	none.close()
}
