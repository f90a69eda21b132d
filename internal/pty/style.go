package pty

import (
	"fmt"
	"strconv"
	"strings"
)

// Style is how a character looks. A colour is "" for the terminal's own, a number from 0 to 255 of xterm's palette, or
// "#rrggbb".
type Style struct {
	Foreground, Background                          string
	Bold, Faint, Italic, Underline, Reverse, Struck bool
}

// Span is a part of a line whose characters have the same style.
type Span struct {
	Column, Width int // in cells
	Text          string
	Style         Style
}

// Spans returns the lines of the screen as spans. It leaves out spaces that cannot be seen.
func (t *Terminal) Spans() [][]Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([][]Span, len(t.cells))
	for row, cells := range t.cells {
		for i := 0; i < len(cells); {
			s := Span{Column: i, Style: cells[i].style}
			var b strings.Builder
			for ; i < len(cells) && cells[i].style == s.Style; i++ {
				b.WriteString(strings.TrimPrefix(cells[i].text, "\x00"))
				s.Width++
			}
			s.Text = b.String()
			if s, seen := s.trimmed(); seen {
				lines[row] = append(lines[row], s)
			}
		}
	}
	return lines
}

// trimmed returns the span without spaces around it that cannot be seen.
func (s Span) trimmed() (trimmed Span, seen bool) {
	if s.Style.Background != "" || s.Style.Reverse || s.Style.Underline || s.Style.Struck {
		return s, true
	}
	text := strings.TrimLeft(s.Text, " ")
	s.Column += len(s.Text) - len(text)
	s.Width -= len(s.Text) - len(text)
	s.Text = strings.TrimRight(text, " ")
	s.Width -= len(text) - len(s.Text)
	return s, s.Text != ""
}

// Cursor returns the position of the cursor, counted from 0, and whether it can be seen.
func (t *Terminal) Cursor() (row, column int, visible bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row, t.col, !t.hidden
}

// apply returns the style after an SGR sequence (ECMA-48, 8.3.117; colours of xterm). It ignores parameters that it
// does not know.
func (s Style) apply(args string) Style {
	params := strings.FieldsFunc(args, func(r rune) bool { return r == ';' || r == ':' })
	if len(params) == 0 {
		return Style{}
	}
	for i := 0; i < len(params); i++ {
		n, err := strconv.Atoi(params[i])
		if err != nil {
			return s
		}
		switch {
		case n == 0:
			s = Style{}
		case n == 38 || n == 48:
			colour, used := extended(params[i+1:])
			if n == 38 {
				s.Foreground = colour
			} else {
				s.Background = colour
			}
			i += used
		case n >= 30 && n <= 37:
			s.Foreground = strconv.Itoa(n - 30)
		case n == 39:
			s.Foreground = ""
		case n >= 40 && n <= 47:
			s.Background = strconv.Itoa(n - 40)
		case n == 49:
			s.Background = ""
		case n >= 90 && n <= 97:
			s.Foreground = strconv.Itoa(n - 90 + 8)
		case n >= 100 && n <= 107:
			s.Background = strconv.Itoa(n - 100 + 8)
		default:
			s.attribute(n)
		}
	}
	return s
}

// attribute applies a parameter that is no colour.
func (s *Style) attribute(n int) {
	switch n {
	case 1:
		s.Bold = true
	case 2:
		s.Faint = true
	case 3:
		s.Italic = true
	case 4:
		s.Underline = true
	case 7:
		s.Reverse = true
	case 9:
		s.Struck = true
	case 22:
		s.Bold, s.Faint = false, false
	case 23:
		s.Italic = false
	case 24:
		s.Underline = false
	case 27:
		s.Reverse = false
	case 29:
		s.Struck = false
	}
}

// extended reads the parameters of a colour after 38 or 48. used is their number.
func extended(params []string) (colour string, used int) {
	numbers := make([]int, 0, 4)
	for _, p := range params[:min(len(params), 4)] {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 255 {
			break
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) >= 2 && numbers[0] == 5:
		return strconv.Itoa(numbers[1]), 2
	case len(numbers) == 4 && numbers[0] == 2:
		return fmt.Sprintf("#%02x%02x%02x", numbers[1], numbers[2], numbers[3]), 4
	}
	return "", len(params)
}

// SGR returns the sequence that sets the style, whatever the style before was.
func (s Style) SGR() string {
	params := "0"
	for _, a := range []struct {
		on   bool
		code string
	}{{s.Bold, "1"}, {s.Faint, "2"}, {s.Italic, "3"}, {s.Underline, "4"}, {s.Reverse, "7"}, {s.Struck, "9"}} {
		if a.on {
			params += ";" + a.code
		}
	}
	return "\x1b[" + params + colourParams(s.Foreground, 30) + colourParams(s.Background, 40) + "m"
}

// colourParams returns the parameters for a colour. base is 30 for the foreground and 40 for the background.
func colourParams(colour string, base int) string {
	var r, g, b int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &r, &g, &b); err == nil {
		return fmt.Sprintf(";%d;2;%d;%d;%d", base+8, r, g, b)
	}
	n, err := strconv.Atoi(colour)
	switch {
	case err != nil:
		return ""
	case n < 8:
		return fmt.Sprintf(";%d", base+n)
	case n < 16:
		return fmt.Sprintf(";%d", base+60+n-8)
	}
	return fmt.Sprintf(";%d;5;%d", base+8, n)
}
