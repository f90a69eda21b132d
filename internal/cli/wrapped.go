package cli

import (
	"strings"
	"unicode/utf8"
)

// wrapped prints a table whose last column is never shortened. If little width is left for it, it is printed below the
// other columns.
func (a *app) wrapped(header []string, rows [][]string) error {
	if !a.outTTY || len(rows) == 0 {
		return a.table(header, rows)
	}
	for _, r := range rows {
		for i, cell := range r {
			r[i] = safeLine(cell)
		}
	}
	const least, below = 40, 4
	widths, last, indent := widest(header, rows), len(header)-1, 0
	for _, w := range widths[:last] {
		indent += w + 2
	}
	if over := indent - 2 - (a.width() - 1); over > 0 {
		narrow(widths[:last], leastWidths(header), over, a.width()/2)
		indent = a.width()
	}
	beside := a.width()-indent-1 >= least
	if !beside {
		indent = below
	}
	entry := func(r []string) string {
		var b strings.Builder
		for i, cell := range r[:last] {
			b.WriteString(pad(shorten(cell, widths[i]), widths[i]) + "  ")
		}
		text := wrap(r[last], a.width()-indent-1)
		if beside {
			b.WriteString(text[0])
			text = text[1:]
		}
		lines := []string{strings.TrimRight(b.String(), " ")}
		for _, l := range text {
			if l != "" {
				lines = append(lines, strings.Repeat(" ", indent)+l)
			}
		}
		return strings.Join(lines, "\n")
	}
	var b strings.Builder
	b.WriteString(a.outStyle(dim, strings.ToUpper(entry(header))) + "\n")
	for _, r := range rows {
		b.WriteString(entry(r) + "\n")
	}
	return a.write([]byte(b.String()))
}

// wrap breaks a text into lines of at most n characters, where words end.
func wrap(s string, n int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= n:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
