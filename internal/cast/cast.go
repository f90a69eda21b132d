// Package cast records what a person sees who types commands at a terminal, and writes it as an asciicast and as an
// SVG file that plays.
//
//	Script ──► Record: bash at a pseudo-terminal ──► Recording ──► Cast: asciicast v2, for players
//	                                                          └──► SVG: plays in every browser, without JavaScript
//
// internal/pictures writes the recordings in docs/pictures/recordings (make pictures), which docs/guide shows.
// TestRecordings in internal/cli plays the scripts again and compares what appears with the committed files.
//
// The sessions are real, their clock is not: a recording consists of screens at which the program had come to rest, and
// the script says how long each is shown. So a spinner does not appear, a slow machine makes no slow film, and the same
// script gives the same frames. Ids and durations differ from session to session. Recording.Same ignores them, so a
// file is written again only if something else has changed.
//
// The package is not part of the product. Record needs bash and the pseudo-terminals of package pty, which exist on
// Linux only.
package cast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon/internal/pty"
)

// Recording is a session at a terminal.
type Recording struct {
	Title         string
	Columns, Rows int
	Frames        []Frame
	End           time.Duration
}

// Frame is a screen and the time at which it appears.
type Frame struct {
	At          time.Duration
	Lines       [][]pty.Span
	Row, Column int // of the cursor, counted from 0
	Cursor      bool
}

// header is the first line of an asciicast v2: https://docs.asciinema.org/manual/asciicast/v2/.
type header struct {
	Version int               `json:"version"`
	Width   int               `json:"width"`
	Height  int               `json:"height"`
	Title   string            `json:"title"`
	Env     map[string]string `json:"env"`
}

// Cast returns the recording as an asciicast v2. Each event draws the lines that differ from the previous frame.
func (r *Recording) Cast() []byte {
	var b bytes.Buffer
	line := func(v any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // these types have no errors
	}
	line(header{2, r.Columns, r.Rows, r.Title, map[string]string{"SHELL": "bash", "TERM": "xterm-256color"}})
	var shown Frame
	for i, f := range r.Frames {
		text := ""
		if i == 0 {
			text = "\x1b[H\x1b[2J"
			shown = Frame{Lines: make([][]pty.Span, r.Rows), Cursor: true}
		}
		line([]any{f.At.Seconds(), "o", text + f.after(shown)})
		shown = f
	}
	line([]any{r.End.Seconds(), "o", ""})
	return b.Bytes()
}

// after returns the output that changes the screen of a frame into this one.
func (f Frame) after(shown Frame) string {
	var b strings.Builder
	for row, spans := range f.Lines {
		if slices.Equal(spans, shown.Lines[row]) {
			continue
		}
		fmt.Fprintf(&b, "\x1b[0m\x1b[%d;1H\x1b[2K", row+1)
		for _, s := range spans {
			fmt.Fprintf(&b, "\x1b[%d;%dH%s%s", row+1, s.Column+1, s.Style.SGR(), s.Text)
		}
	}
	fmt.Fprintf(&b, "\x1b[0m\x1b[%d;%dH", f.Row+1, f.Column+1)
	if f.Cursor != shown.Cursor {
		b.WriteString(map[bool]string{true: "\x1b[?25h", false: "\x1b[?25l"}[f.Cursor])
	}
	return b.String()
}

// Parse reads an asciicast v2 with frames as Cast writes them.
func Parse(text []byte) (*Recording, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return nil, errors.New("cast: the file has no first line")
	}
	var h header
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
		return nil, fmt.Errorf("cast: the first line: %w", err)
	}
	if h.Version != 2 || h.Width < 1 || h.Width > 500 || h.Height < 1 || h.Height > 500 {
		return nil, fmt.Errorf("cast: version %d with %d × %d characters is not supported",
			h.Version, h.Width, h.Height)
	}
	r := &Recording{Title: h.Title, Columns: h.Width, Rows: h.Height}
	term := pty.NewTerminal(h.Width, h.Height)
	for lines.Scan() {
		var at float64
		var kind, output string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &output}); err != nil || kind != "o" {
			return nil, fmt.Errorf("cast: event %d is no output: %w", len(r.Frames)+1, err)
		}
		r.End = time.Duration(at*1000+.5) * time.Millisecond
		if output != "" {
			_, _ = term.Write([]byte(output)) // a terminal has no errors
			r.Frames = append(r.Frames, frame(term, r.End))
		}
	}
	return r, lines.Err()
}

// frame returns the screen of a terminal.
func frame(term *pty.Terminal, at time.Duration) Frame {
	f := Frame{At: at, Lines: term.Spans()}
	f.Row, f.Column, f.Cursor = term.Cursor()
	return f
}

// varying matches what differs between two sessions with the same commands: ids, durations, ages, and the bars of
// durations.
var varying = regexp.MustCompile(`(run|ses)_[0-9a-z]{20}|\+?<?\b\d+(\.\d+)?(ms|s)\b|\b(now|ago)\b|[█▏▎▍▌▋▊▉░]+|\s+`)

// Difference returns the first difference between what two recordings show, and "" if there is none. It ignores ids,
// durations, ages, and spaces, which align columns.
func (r *Recording) Difference(other *Recording) string {
	if r.Columns != other.Columns || r.Rows != other.Rows || r.Title != other.Title {
		return fmt.Sprintf("%q with %d × %d characters, %q with %d × %d",
			r.Title, r.Columns, r.Rows, other.Title, other.Columns, other.Rows)
	}
	for i, f := range r.Frames[:min(len(r.Frames), len(other.Frames))] {
		g := other.Frames[i]
		if f.At != g.At {
			return fmt.Sprintf("frame %d is at %v and %v", i+1, f.At, g.At)
		}
		for row := range f.Lines {
			if a, b := constant(f.Lines[row]), constant(g.Lines[row]); a != b {
				return fmt.Sprintf("frame %d (%v), line %d: %q and %q", i+1, f.At, row+1, a, b)
			}
		}
	}
	if len(r.Frames) != len(other.Frames) || r.End != other.End {
		return fmt.Sprintf("%d frames in %v, %d in %v", len(r.Frames), r.End, len(other.Frames), other.End)
	}
	return ""
}

// constant returns the text of a line, with the styles of words, without what varies.
func constant(spans []pty.Span) string {
	var b strings.Builder
	for _, s := range spans {
		if text := strings.TrimSpace(varying.ReplaceAllString(s.Text, " ")); text != "" {
			b.WriteString(" " + strings.TrimPrefix(s.Style.SGR(), "\x1b[0") + text)
		}
	}
	return b.String()
}
