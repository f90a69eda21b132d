package tui

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon/internal/markdown"
)

// input is the text that the person writes, with a cursor. The text may have several lines.
type input struct {
	text []rune
	at   int // the cursor, as an index into text

	// The layout of the text, see show.
	width  int   // of the screen
	starts []int // index of the first character of each line
	used   int   // columns of the last line
	laid   bool  // the layout is complete
}

// maxInput bounds the input, in characters. The rest of a longer text is cut off.
const maxInput = 1 << 20

func (in *input) String() string { return string(in.text) }

func (in *input) set(s string) {
	in.text = []rune(s)
	in.at = len(in.text)
	in.changed(0)
}

// insert inserts a text at the cursor. It converts all line breaks to \n. It drops characters that would be invisible,
// because they come from pasted text and were not typed.
func (in *input) insert(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	added := make([]rune, 0, len(s))
	for _, r := range s {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			added = append(added, r)
		}
	}
	added = added[:min(len(added), max(maxInput-len(in.text), 0))]
	in.text = slices.Insert(in.text, in.at, added...)
	in.changed(in.at)
	in.at += len(added)
}

// before is the text before the cursor.
func (in *input) before() string { return string(in.text[:in.at]) }

// replace replaces the last bytes before the cursor.
func (in *input) replace(back int, text string) {
	before := in.before()
	rest := string(in.text[in.at:])
	before = before[:max(len(before)-back, 0)] + text
	in.text = []rune(before + rest)
	in.at = len([]rune(before))
	in.changed(0)
}

func (in *input) delete(from, to int) {
	from, to = max(from, 0), min(to, len(in.text))
	if from >= to {
		return
	}
	in.text = append(in.text[:from], in.text[to:]...)
	in.at = from
	in.changed(from)
}

// lineStart and lineEnd return the ends of the line with the cursor.
func (in *input) lineStart() int {
	i := in.at
	for i > 0 && in.text[i-1] != '\n' {
		i--
	}
	return i
}

func (in *input) lineEnd() int {
	i := in.at
	for i < len(in.text) && in.text[i] != '\n' {
		i++
	}
	return i
}

// wordLeft and wordRight return the ends of the word at the cursor.
func (in *input) wordLeft() int {
	i := in.at
	for i > 0 && unicode.IsSpace(in.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(in.text[i-1]) {
		i--
	}
	return i
}

func (in *input) wordRight() int {
	i := in.at
	for i < len(in.text) && unicode.IsSpace(in.text[i]) {
		i++
	}
	for i < len(in.text) && !unicode.IsSpace(in.text[i]) {
		i++
	}
	return i
}

// key handles an editing key by its name. It reports whether the name is an editing key.
func (in *input) key(name string) bool {
	switch name {
	case "left", "ctrl+b":
		in.at = max(in.at-1, 0)
	case "right":
		in.at = min(in.at+1, len(in.text))
	case "home", "ctrl+a":
		in.at = in.lineStart()
	case "end", "ctrl+e":
		in.at = in.lineEnd()
	case "alt+left", "ctrl+left", "alt+b":
		in.at = in.wordLeft()
	case "alt+right", "ctrl+right":
		in.at = in.wordRight()
	case "backspace", "ctrl+h", "shift+backspace":
		in.delete(in.at-1, in.at)
	case "delete":
		in.delete(in.at, in.at+1)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		in.delete(in.wordLeft(), in.at)
	case "ctrl+u": // at the start of a line it deletes the line break, so that repeated keys delete several lines
		from := in.lineStart()
		if from == in.at {
			from--
		}
		in.delete(from, in.at)
	case "ctrl+k":
		in.delete(in.at, in.lineEnd())
	case "alt+enter", "ctrl+j", "shift+enter":
		in.insert("\n")
	default:
		return false
	}
	return true
}

// shown is the input as lines of the screen.
type shown struct {
	in       *input
	starts   []int // index of the first character of each line
	row, col int   // of the cursor
}

// line returns a line in the form in which the screen shows it.
func (s shown) line(row int) string {
	var b strings.Builder
	for _, r := range s.in.text[s.starts[row]:s.end(row)] {
		b.WriteString(drawn(r))
	}
	return b.String()
}

// end returns the index after the last character of a line.
func (s shown) end(row int) int {
	if row+1 < len(s.starts) {
		return s.starts[row+1]
	}
	return len(s.in.text)
}

// drawn returns a character in the form in which the screen shows it.
func drawn(r rune) string {
	switch r {
	case '\n':
		return ""
	case '\t':
		return "    "
	}
	return safeLine(string(r))
}

// columns returns the number of columns that a character takes.
func columns(r rune) int {
	if ' ' <= r && r <= '~' {
		return 1
	}
	return markdown.Width(drawn(r))
}

// changed records that the text changed from a character on. The lines before keep their layout, except the last two:
// a change can move the word at the end of a line. So a key costs the same at the end of a long text.
func (in *input) changed(from int) {
	n, _ := slices.BinarySearch(in.starts, from+1) // lines that begin before the change or at it
	in.starts, in.laid = in.starts[:max(n-2, 0)], false
}

// show lays out the input in a width. It breaks lines at words, and words that are longer than a line.
func (in *input) show(width int) shown {
	width = max(width, 2)
	if in.width != width {
		in.width = width
		in.changed(0)
	}
	if !in.laid {
		in.lay(width)
	}
	s := shown{in: in, starts: in.starts}
	if in.at == len(in.text) && in.used >= width {
		s.starts = append(s.starts[:len(s.starts):len(s.starts)], len(in.text))
	}
	n, _ := slices.BinarySearch(s.starts, in.at+1)
	s.row = n - 1
	for _, r := range in.text[s.starts[s.row]:in.at] {
		s.col += columns(r)
	}
	return s
}

// lay lays out the lines from the last known one on.
func (in *input) lay(width int) {
	if len(in.starts) == 0 {
		in.starts = append(in.starts, 0)
	}
	start := in.starts[len(in.starts)-1]
	used, word := 0, start // columns used, start of the last word
	next := func(i int) {
		in.starts = append(in.starts, i)
		start, word, used = i, i, 0
	}
	for i := start; i < len(in.text); i++ {
		r := in.text[i]
		w := columns(r)
		switch {
		case r == '\n':
			next(i + 1)
			continue
		case used+w > width && r != ' ' && word > start:
			next(word)
			i = word - 1 // move the word to the next line
			continue
		case used+w > width && i > start:
			next(i)
		}
		used += w
		if r == ' ' {
			word = i + 1
		}
	}
	in.used, in.laid = used, true
}

// move moves the cursor by lines of the screen. It returns false if there is no such line.
func (in *input) move(by, width int) bool {
	s := in.show(width)
	row := s.row + by
	if row < 0 || row >= len(s.starts) {
		return false
	}
	at, used := s.starts[row], 0
	end := s.end(row)
	if row+1 < len(s.starts) && end > 0 && in.text[end-1] == '\n' {
		end--
	}
	for at < end && used < s.col {
		used += markdown.Width(string(in.text[at]))
		at++
	}
	in.at = at
	return true
}
