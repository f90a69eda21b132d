package pty

import (
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Terminal is the screen of a terminal of a fixed size, for programs that take the whole screen. Write feeds it the
// program's output. It follows the sequences of ECMA-48 and xterm that such programs use: cursor addresses, erased and
// inserted lines and characters, repeats, scroll regions, styles. It is safe for concurrent use.
type Terminal struct {
	mu            sync.Mutex
	columns, rows int
	cells         [][]glyph
	style         Style // of the next character
	hidden        bool  // the cursor
	row, col      int
	wrap          bool // the next character begins a new line
	top, bottom   int  // of the scroll region
	saved         [2]int
	main          [][]glyph // the screen before a program asked for the other one
	mainAt        [2]int
	last          string
	rest          []byte // an incomplete sequence
}

// glyph is the content of a cell. The text of the second cell of a wide character is "\x00".
type glyph struct {
	text  string
	style Style
}

// NewTerminal returns an empty screen.
func NewTerminal(columns, rows int) *Terminal {
	t := &Terminal{columns: columns, rows: rows, bottom: rows - 1}
	for range rows {
		t.cells = append(t.cells, t.blank())
	}
	return t
}

func (t *Terminal) blank() []glyph {
	line := make([]glyph, t.columns)
	for i := range line {
		line[i] = t.empty()
	}
	return line
}

// empty is an erased cell, which keeps the background.
func (t *Terminal) empty() glyph { return glyph{" ", Style{Background: t.style.Background}} }

// Lines returns the screen without spaces at the ends of lines.
func (t *Terminal) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([]string, len(t.cells))
	for i, c := range t.cells {
		var b strings.Builder
		for _, g := range c {
			b.WriteString(g.text)
		}
		lines[i] = strings.TrimRight(strings.ReplaceAll(b.String(), "\x00", ""), " ")
	}
	return lines
}

// Write implements [io.Writer].
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rest = append(t.rest, b...)
	for len(t.rest) > 0 {
		n := t.step(t.rest)
		if n == 0 {
			break
		}
		t.rest = t.rest[n:]
	}
	return len(b), nil
}

// step handles the beginning of the output and returns its length. It returns 0 if it needs more output.
func (t *Terminal) step(b []byte) int {
	switch c := b[0]; {
	case c == 0x1b:
		return t.escape(b)
	case c == '\r':
		t.col, t.wrap = 0, false
	case c == '\n':
		t.down()
	case c == '\b':
		t.col, t.wrap = max(t.col-1, 0), false
	case c == '\t':
		t.col = min((t.col/8+1)*8, t.columns-1)
	case c >= 0x20:
		if !utf8.FullRune(b) {
			return 0
		}
		r, n := utf8.DecodeRune(b)
		t.print(r)
		return n
	}
	return 1
}

func (t *Terminal) down() {
	t.wrap = false
	if t.row == t.bottom {
		t.scroll(1)
		return
	}
	t.row = min(t.row+1, t.rows-1)
}

// scroll moves the lines of the scroll region up by n. If n is negative, it moves them down.
func (t *Terminal) scroll(n int) {
	for ; n > 0; n-- {
		copy(t.cells[t.top:t.bottom+1], t.cells[t.top+1:t.bottom+1])
		t.cells[t.bottom] = t.blank()
	}
	for ; n < 0; n++ {
		copy(t.cells[t.top+1:t.bottom+1], t.cells[t.top:t.bottom])
		t.cells[t.top] = t.blank()
	}
}

func (t *Terminal) print(r rune) {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) { // joins the previous character
		if t.col > 0 {
			t.cells[t.row][t.col-1].text += string(r)
		}
		return
	}
	wide := r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x1f300 && r < 0x1fb00
	if t.wrap || wide && t.col == t.columns-1 {
		t.col = 0
		t.down()
	}
	t.last = string(r)
	t.cells[t.row][t.col] = glyph{t.last, t.style}
	if wide && t.col+1 < t.columns {
		t.col++
		t.cells[t.row][t.col] = glyph{"\x00", t.style}
	}
	if t.col == t.columns-1 {
		t.wrap = true
	} else {
		t.col++
	}
}

// escape handles an escape sequence.
func (t *Terminal) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				t.control(string(b[2:i]), b[i])
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_', '^': // a string that ends with BEL or ST
		for i := 2; i < len(b); i++ {
			if b[i] == '\a' {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 0
	case '7':
		t.saved = [2]int{t.row, t.col}
	case '8':
		t.row, t.col = t.saved[0], t.saved[1]
	case 'M':
		if t.row == t.top {
			t.scroll(-1)
		} else {
			t.row = max(t.row-1, 0)
		}
	case '(', ')':
		if len(b) < 3 {
			return 0
		}
		return 3
	}
	return 2
}

// control handles a control sequence.
func (t *Terminal) control(args string, end byte) {
	if strings.HasPrefix(args, "?") || strings.HasPrefix(args, ">") || strings.HasPrefix(args, "=") ||
		strings.HasPrefix(args, "<") || strings.HasSuffix(args, " ") || strings.HasSuffix(args, "$") {
		t.mode(args, end)
		return
	}
	if end == 'm' {
		t.style = t.style.apply(args)
		return
	}
	parts := strings.Split(args, ";")
	arg := func(i, otherwise int) int {
		if i < len(parts) {
			if n, err := strconv.Atoi(parts[i]); err == nil && n > 0 {
				return min(n, 1000)
			}
		}
		return otherwise
	}
	if end != 'b' {
		t.wrap = false
	}
	n := arg(0, 1)
	switch end {
	case 'A':
		t.row = max(t.row-n, 0)
	case 'B', 'e':
		t.row = min(t.row+n, t.rows-1)
	case 'C', 'a':
		t.col = min(t.col+n, t.columns-1)
	case 'D':
		t.col = max(t.col-n, 0)
	case 'E':
		t.row, t.col = min(t.row+n, t.rows-1), 0
	case 'F':
		t.row, t.col = max(t.row-n, 0), 0
	case 'G', '`':
		t.col = min(n-1, t.columns-1)
	case 'd':
		t.row = min(n-1, t.rows-1)
	case 'H', 'f':
		t.row, t.col = min(n-1, t.rows-1), min(arg(1, 1)-1, t.columns-1)
	case 'I':
		t.col = min((t.col/8+n)*8, t.columns-1)
	case 'Z':
		t.col = max(((t.col+7)/8-n)*8, 0)
	case 'r':
		if bottom := min(arg(1, t.rows)-1, t.rows-1); n-1 < bottom {
			t.top, t.bottom, t.row, t.col = n-1, bottom, 0, 0
		}
	case 'S':
		t.scroll(n)
	case 'T':
		t.scroll(-n)
	case 's':
		t.saved = [2]int{t.row, t.col}
	case 'u':
		t.row, t.col = t.saved[0], t.saved[1]
	case 'b':
		for range n {
			r, _ := utf8.DecodeRuneInString(t.last)
			t.print(r)
		}
	default:
		t.change(end, n, parts[0])
	}
}

// mode handles the private modes of xterm: the other screen, and the cursor.
func (t *Terminal) mode(args string, end byte) {
	switch {
	case args == "?1049" && end == 'h':
		t.main, t.mainAt = t.cells, [2]int{t.row, t.col}
		t.cells = nil
		for range t.rows {
			t.cells = append(t.cells, t.blank())
		}
	case args == "?1049" && end == 'l' && len(t.main) == t.rows && len(t.main[0]) == t.columns:
		t.cells, t.row, t.col, t.main, t.wrap = t.main, t.mainAt[0], t.mainAt[1], nil, false
	case args == "?25":
		t.hidden = end == 'l'
	}
}

// change handles the sequences that erase, insert and delete.
func (t *Terminal) change(end byte, n int, mode string) {
	line := t.cells[t.row]
	switch end {
	case 'K':
		from, to := t.col, t.columns
		if mode == "1" {
			from, to = 0, t.col+1
		} else if mode == "2" {
			from = 0
		}
		for i := from; i < to; i++ {
			line[i] = t.empty()
		}
	case 'J':
		from, to := t.row+1, t.rows
		switch mode {
		case "1":
			from, to = 0, t.row
		case "2", "3":
			from = 0
		}
		if from == t.row+1 {
			t.change('K', 1, "")
		}
		for i := from; i < to; i++ {
			t.cells[i] = t.blank()
		}
	case 'X':
		for i := t.col; i < min(t.col+n, t.columns); i++ {
			line[i] = t.empty()
		}
	case 'P':
		n = min(n, t.columns-t.col)
		copy(line[t.col:], line[t.col+n:])
		for i := t.columns - n; i < t.columns; i++ {
			line[i] = t.empty()
		}
	case '@':
		n = min(n, t.columns-t.col)
		copy(line[t.col+n:], line[t.col:])
		for i := range n {
			line[t.col+i] = t.empty()
		}
	case 'L', 'M':
		if t.row < t.top || t.row > t.bottom {
			return
		}
		top := t.top
		t.top = t.row
		if end == 'M' {
			n = -n
		}
		t.scroll(-n)
		t.top = top
	}
}
