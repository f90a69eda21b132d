package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tenonhq/tenon/internal/cast"
)

// TestRecordings plays the sessions of docs/pictures/recordings again, and compares what appears with the committed
// recordings.
func TestRecordings(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package pty opens terminals on Linux only")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	program, err := exec.LookPath("tenon")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cast.Scripts {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "..", "docs", "pictures", "recordings", s.Name)
			text, err := os.ReadFile(file + ".cast")
			if err != nil {
				t.Fatal(err)
			}
			committed, err := cast.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if svg, err := os.ReadFile(file + ".svg"); err != nil || string(svg) != string(committed.SVG()) {
				t.Errorf("%s.svg is not drawn from %s.cast (%v); make recordings draws it again", s.Name, s.Name, err)
			}
			played, err := cast.Record(t.Context(), s, shortHome(t), filepath.Dir(program))
			if err != nil {
				t.Fatal(err)
			}
			if d := committed.Difference(played); d != "" {
				t.Errorf("%s.cast differs from what happens now: %s; make recordings records it again", s.Name, d)
			}
		})
	}
}
