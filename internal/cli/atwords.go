package cli

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// atWords breaks the lines of a note at words if stderr is a terminal, which would break them within words and ids. In
// chat on the whole screen, package tui does this.
func (a *app) atWords(text string) string {
	f, ok := streamOf(a.err).(*os.File)
	if !ok || a.onScreen.Load() && a.lent.Load() == 0 {
		return text
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < leastColumns {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(brokenAtWords(l, columns), "\n")
	}
	return strings.Join(lines, "\n")
}

// leastColumns is the width of a terminal below which lines are not broken at words.
const leastColumns = 20

// brokenAtWords breaks a line at its blanks into lines of at most some columns. A longer word is not broken, so that it
// can be copied. The lines after the first have the same indentation.
func brokenAtWords(line string, columns int) (lines []string) {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	for breadth(line) > columns {
		at, used, last := -1, 0, ' '
		for i, r := range line {
			if used > columns && at >= 0 {
				break
			}
			if r == ' ' && last != ' ' && i > len(indent) {
				at = i
			}
			used, last = used+breadthOf(r), r
		}
		if at < 0 {
			break
		}
		lines = append(lines, line[:at])
		line = indent + strings.TrimLeft(line[at:], " ")
		if line == indent {
			return lines
		}
	}
	return append(lines, line)
}
