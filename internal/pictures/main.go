// Command pictures draws the picture of a terminal in README.md from a real run: make pictures.
//
// It runs the commands below at a pseudo-terminal in an empty HOME, with the program that TENON_BIN names, and writes
// the screen as an SVG file. The file contains text instead of pixels: it is sharp, small and searchable. The program
// chooses the colours.
//
// The picture of the workbench beside it comes from web/app/pictures. Both are committed, because a page on GitHub can
// show neither a terminal nor a browser. The program is no part of the product; it imports only package internal/pty.
//
// TestPicture in internal/cli checks that the commands still print what the committed file shows.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

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
		return errors.New("usage: pictures FILE.svg")
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
	return os.WriteFile(args[0], svg(lines), 0o644)
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
