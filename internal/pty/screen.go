package pty

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var escape = regexp.MustCompile("\x1b(\\[[0-9;?]*[a-zA-Z]|\\][^\x07\x1b]*(\x07|\x1b\\\\))")

// plain removes escape sequences.
func plain(s string) string { return escape.ReplaceAllString(s, "") }

// Cell is a character on the screen. Its style is the parameters of the SGR sequences before it, such as "1" for bold.
type Cell struct {
	Rune  rune
	Style string
}

// Screen returns the lines that a terminal shows after some output. It handles carriage returns, backspaces, erased
// lines and movements of the cursor. It does not wrap lines.
func Screen(output string) [][]Cell {
	var lines [][]Cell
	row, col, style := 0, 0, ""
	for len(output) > 0 {
		if loc := escape.FindStringIndex(output); loc != nil && loc[0] == 0 {
			seq := output[:loc[1]]
			output = output[loc[1]:]
			if seq[1] != '[' {
				continue
			}
			arg, end := seq[2:len(seq)-1], seq[len(seq)-1]
			n, err := strconv.Atoi(arg)
			if err != nil || n == 0 {
				n = 1
			}
			switch end {
			case 'm':
				style = sgr(style, arg)
			case 'A':
				row = max(row-n, 0)
			case 'B':
				row += n
			case 'C':
				col += n
			case 'D':
				col = max(col-n, 0)
			case 'G':
				col = n - 1
			case 'J', 'K':
				lines = erase(lines, row, col, arg, end == 'J')
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(output)
		output = output[size:]
		switch r {
		case '\r':
			col = 0
		case '\n':
			row, col = row+1, 0
		case '\b':
			col = max(col-1, 0)
		case '\a':
		default:
			lines = put(lines, row, col, Cell{r, style})
			col++
		}
	}
	return lines
}

// sgr applies the parameters of one SGR sequence to the current style. The parameter 0, or no parameter, ends all
// styles.
func sgr(style, arg string) string {
	for p := range strings.SplitSeq(arg, ";") {
		switch {
		case p == "" || p == "0":
			style = ""
		case style == "":
			style = p
		default:
			style += ";" + p
		}
	}
	return style
}

func erase(lines [][]Cell, row, col int, arg string, below bool) [][]Cell {
	if row >= len(lines) {
		return lines
	}
	if arg == "2" {
		col = 0
	}
	if col < len(lines[row]) {
		lines[row] = lines[row][:col]
	}
	if below {
		lines = lines[:row+1]
	}
	return lines
}

func put(lines [][]Cell, row, col int, c Cell) [][]Cell {
	for len(lines) <= row {
		lines = append(lines, nil)
	}
	for len(lines[row]) <= col {
		lines[row] = append(lines[row], Cell{Rune: ' '})
	}
	lines[row][col] = c
	return lines
}

// Text returns the lines that a terminal shows after some output, without styles and trailing spaces.
func Text(output string) []string {
	var all []string
	for _, cells := range Screen(output) {
		var b strings.Builder
		for _, c := range cells {
			b.WriteRune(c.Rune)
		}
		all = append(all, strings.TrimRight(b.String(), " "))
	}
	return all
}
