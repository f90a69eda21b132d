package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
)

// Before a person trusts a project, tenon lists what the project can do. The list contains texts of the project,
// which are not trusted. The functions in this file ensure that no text hides another one or looks like another line:
// each text stays in its line, lines fit the terminal, and pages fit the screen.

// The longest runs that are shown unchanged. Many spaces push the rest of a line out of sight, and many combining marks
// draw over other lines.
const (
	spaceRun = 8
	markRun  = 4
)

// shownLine is safeLine for a text of the list. It replaces long runs of spaces and of combining marks by their count,
// such as \x20{400}.
func shownLine(s string) string {
	s = safeLine(s)
	if !strings.Contains(s, strings.Repeat(" ", spaceRun+1)) && !strings.ContainsFunc(s, unicode.IsMark) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		count := 1
		for strings.HasPrefix(s[count*n:], s[:n]) && (r == ' ' || unicode.IsMark(r)) {
			count++
		}
		switch {
		case r == ' ' && count > spaceRun:
			fmt.Fprintf(&b, `\x20{%d}`, count)
		case unicode.IsMark(r) && count > markRun:
			fmt.Fprintf(&b, `\u{%x}{%d}`, r, count)
		default:
			b.WriteString(s[:count*n])
		}
		s = s[count*n:]
	}
	return b.String()
}

// wrapHard breaks a line at a width without losing characters. It breaks at blanks if possible, and indents the
// following lines. Width 0 breaks no line.
func wrapHard(line string, width int) []string {
	if width <= 0 || breadth(line) <= width {
		return []string{line}
	}
	indent := "      "
	if width < 30 {
		indent = "  "
	}
	var lines []string
	for prefix := ""; ; prefix = indent {
		room := max(width-len(prefix), 4) // an emoji takes two columns
		cut, blank, taken := len(line), -1, 0
		for i, r := range line {
			if taken += breadthOf(r); taken > room {
				cut = i
				break
			}
			if r == ' ' && i > room/2 {
				blank = i
			}
		}
		switch {
		case cut == len(line):
			return append(lines, prefix+line)
		case blank >= 0:
			lines, line = append(lines, prefix+line[:blank]), line[blank+1:]
		default:
			lines, line = append(lines, prefix+line[:cut]), line[cut:]
		}
	}
}

// pageWidth is the width of the terminal on which the question is asked.
func (a *app) pageWidth() int {
	if a.columns > 0 {
		return a.columns
	}
	if f, ok := streamOf(a.err).(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// pageHeight is the height of the terminal, or 0 if it is not known.
func (a *app) pageHeight() int {
	if a.lineCount > 0 {
		return a.lineCount
	}
	if f, ok := streamOf(a.err).(*os.File); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil {
			return h
		}
	}
	return 0
}

// page shows lines one screen at a time. It starts no pager, because a project could choose the program.
func (a *app) page(ctx context.Context, lines []string) error {
	most := len(lines)
	if h := a.pageHeight(); h > 0 {
		most = max(h-2, 1)
	}
	for at := 0; at < len(lines); {
		end := min(at+most, len(lines))
		a.note("%s", strings.Join(lines[at:end], "\n"))
		if at = end; at >= len(lines) {
			break
		}
		answer, err := a.ask(ctx, fmt.Sprintf("-- %d of %d lines; Enter shows more, q ends -- ", at, len(lines)))
		if err != nil {
			return tenon.Errorf(tenon.CodeCancelled, "interrupted")
		}
		if r, _ := utf8.DecodeRuneInString(strings.ToLower(answer)); r == 'q' || r == 'n' {
			return tenon.Errorf(tenon.CodeDenied, "the project is not used: you do not trust it")
		}
	}
	return nil
}
