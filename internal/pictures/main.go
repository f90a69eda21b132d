// Command pictures draws the picture of a terminal in README.md, and the recordings in docs/guide, from real runs: make
// pictures.
//
// It runs the commands below at a pseudo-terminal in an empty HOME, with the program that TENON_BIN names, and writes
// the screen as an SVG file. The file contains text instead of pixels: it is sharp, small and searchable. The program
// chooses the colours. It plays the scripts of package internal/cast in the same way, and writes each as an asciicast
// and as an SVG file that plays.
//
// A file that would differ only in ids and durations is not written, so a second run changes nothing.
//
// The picture of the workbench beside it comes from web/app/pictures. All are committed, because a page on GitHub can
// show neither a terminal nor a browser. The program is no part of the product.
//
// TestPicture and TestRecordings in internal/cli check that the commands still print what the committed files show.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/tenonhq/tenon/internal/cast"
	"github.com/tenonhq/tenon/internal/pty"
)

// command is a command in the picture, with the answers that a person types.
type command struct {
	text    string
	answers []pty.Answer
}

var commands = []command{
	{text: "tenon init"},
	{text: `tenon run "What is the weather in London?"`},
	{text: `tenon run "Count one up."`, answers: []pty.Answer{{Prompt: "dit arguments:", Type: "y"}}},
	{text: "tenon runs show -1"},
}

const columns = 88

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: pictures FOLDER")
	}
	program := cmp.Or(os.Getenv("TENON_BIN"), "tenon")
	found, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	lines, err := record(filepath.Dir(found))
	if err != nil {
		return err
	}
	file, drawn := filepath.Join(args[0], "terminal.svg"), svg(lines)
	if old, err := os.ReadFile(file); err != nil || !bytes.Equal(constant(old), constant(drawn)) {
		if err := os.WriteFile(file, drawn, 0o644); err != nil {
			return err
		}
	}
	for _, s := range cast.Scripts {
		if err := play(s, filepath.Dir(found), filepath.Join(args[0], "recordings")); err != nil {
			return err
		}
	}
	return nil
}

// varying matches what differs between two pictures of the same commands: ids, durations with their bars, and the
// coordinates of what is behind them in a line.
var varying = regexp.MustCompile(`<text [^>]*>[█▏▎▍▌▋▊▉░ ]+</text>\n|(run|ses)_[0-9a-z]{20}|` +
	`\+?(&lt;)?\d+(\.\d+)?(ms|s)\b|(x|textLength)="[0-9.]+"|[█▏▎▍▌▋▊▉░ ]+`)

func constant(svg []byte) []byte { return varying.ReplaceAll(svg, nil) }

// play plays a script, and writes the recording into a folder unless it shows what the files there show.
func play(s cast.Script, programs, folder string) error {
	home, err := os.MkdirTemp("", "tenon-recording-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	r, err := cast.Record(context.Background(), s, home, programs)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, s.Name+".cast")
	if old, err := os.ReadFile(file); err == nil {
		if old, err := cast.Parse(old); err == nil && old.Difference(r) == "" {
			r = old
		}
	}
	return errors.Join(os.WriteFile(file, r.Cast(), 0o644),
		os.WriteFile(filepath.Join(folder, s.Name+".svg"), r.SVG(), 0o644))
}

// record runs the commands with the tenon in the folder programs, and returns the lines of the terminal.
func record(programs string) (lines [][]pty.Cell, err error) {
	home, err := os.MkdirTemp("", "tenon-picture-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	s, err := pty.Start(pty.Config{Dir: home, Columns: columns, Env: []string{
		"HOME=" + home, "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"),
		"TERM=xterm-256color", "TZ=UTC", "TENON_NO_PROBE=1", "TENON_KEYRING=off",
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, c := range commands {
		output, status, err := s.Run(c.text, c.answers...)
		if err != nil || status != 0 {
			return nil, fmt.Errorf("%s: status %d: %w\n%s", c.text, status, err, output)
		}
		lines = append(lines, prompt(c.text))
		lines = append(lines, pty.Screen(output)...)
	}
	return lines, nil
}

// prompt returns the line with a command. It has the style that svg uses for typed text.
func prompt(text string) []pty.Cell {
	cells := []pty.Cell{{Rune: '$', Style: "2"}, {Rune: ' '}}
	for _, r := range text {
		cells = append(cells, pty.Cell{Rune: r, Style: "1"})
	}
	return cells
}
