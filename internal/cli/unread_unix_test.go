//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUX7_UnreadInput finds out whether stdin has data, without waiting for it.
func TestUX7_UnreadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		open func() (*os.File, error)
		want bool
	}{
		"a file":     {func() (*os.File, error) { return os.Open(file) }, true},
		"no input":   {func() (*os.File, error) { return os.Open(os.DevNull) }, false},
		"a pipe":     {func() (*os.File, error) { return pipeWith("x") }, true},
		"empty pipe": {func() (*os.File, error) { return pipeWith("") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := tt.open()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := unreadInput(f); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if unreadInput(strings.NewReader("x")) {
		t.Error("a reader of a test counts as stdin")
	}
}

// pipeWith returns the reading end of a pipe with the text. The writing end is closed if the text is not empty, and
// stays open otherwise.
func pipeWith(text string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil || text == "" {
		return r, err
	}
	_, err = w.WriteString(text)
	_ = w.Close()
	return r, err
}

// TestUX1_NoPlainQuestions checks that no question is asked in plain lines while the screen of chat reads the terminal.
func TestUX1_NoPlainQuestions(t *testing.T) {
	a := newApp(stdio{strings.NewReader(""), os.Stdout, os.Stderr})
	a.inTTY, a.errTTY = true, true
	for _, tt := range []struct {
		screen bool
		lent   int32
		want   bool
	}{{false, 0, true}, {true, 0, false}, {true, 1, true}} {
		a.onScreen.Store(tt.screen)
		a.lent.Store(tt.lent)
		if got := a.canAsk(); got != tt.want {
			t.Errorf("on the screen %v, lent out %d times: %v, want %v", tt.screen, tt.lent, got, tt.want)
		}
	}
}
