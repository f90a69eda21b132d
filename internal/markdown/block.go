package markdown

import (
	"strconv"
	"strings"
)

// kind is the kind of a block.
type kind int

const (
	paragraph kind = iota
	heading
	code
	quote
	list
	rule
	table
)

// block is a part of a document.
type block struct {
	kind    kind
	level   int      // of a heading
	text    string   // text of a paragraph or a heading; lines with breaks
	lang    string   // of code
	lines   []string // of code
	inner   []block  // of a quote
	items   []item   // of a list
	rows    [][]string
	aligned []byte // l, c or r, by column
}

// item is an entry of a list.
type item struct {
	mark   string // such as "•", "1." or "☐"
	blocks []block
}

// maxDepth bounds nested lists and quotes.
const maxDepth = 12

// parse reads the blocks of a document.
func parse(lines []string, depth int) (blocks []block) {
	for i := 0; i < len(lines); {
		l := lines[i]
		text := strings.TrimSpace(l)
		switch {
		case text == "":
			i++
		case fenceOf(l) != "":
			var b block
			b, i = parseCode(lines, i)
			blocks = append(blocks, b)
		case headingOf(text) > 0:
			n := headingOf(text)
			blocks = append(blocks, block{kind: heading, level: n,
				text: strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text[n:]), "#"))})
			i++
		case isRule(text):
			blocks = append(blocks, block{kind: rule})
			i++
		case strings.HasPrefix(text, ">") && depth < maxDepth:
			var inner []string
			for ; i < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i]), ">"); i++ {
				inner = append(inner, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(lines[i]), ">"), " "))
			}
			blocks = append(blocks, block{kind: quote, inner: parse(inner, depth+1)})
		case startsItem(l) && depth < maxDepth:
			var b block
			b, i = parseList(lines, i, depth)
			blocks = append(blocks, b)
		case strings.Contains(text, "|") && i+1 < len(lines) && isDelimiter(lines[i+1]):
			var b block
			b, i = parseTable(lines, i)
			blocks = append(blocks, b)
		default:
			var b block
			b, i = parseParagraph(lines, i)
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// parseParagraph reads lines until a line that begins another block.
func parseParagraph(lines []string, i int) (block, int) {
	text := []string{strings.TrimLeft(lines[i], " ")}
	for i++; i < len(lines); i++ {
		l, t := lines[i], strings.TrimSpace(lines[i])
		if t == "" || fenceOf(l) != "" || headingOf(t) > 0 || isRule(t) || strings.HasPrefix(t, ">") || startsItem(l) {
			break
		}
		if strings.Contains(t, "|") && i+1 < len(lines) && isDelimiter(lines[i+1]) {
			break
		}
		text = append(text, strings.TrimLeft(l, " "))
	}
	return block{kind: paragraph, text: strings.Join(text, "\n")}, i
}

// parseCode reads fenced code. If there is no closing fence, the code ends with the text, because the rest may still
// arrive.
func parseCode(lines []string, i int) (block, int) {
	mark := fenceOf(lines[i])
	indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " "))
	info := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines[i]), mark))
	lang, _, _ := strings.Cut(info, " ")
	b := block{kind: code, lang: lang}
	for i++; i < len(lines); i++ {
		if closes(lines[i], mark) {
			return b, i + 1
		}
		l := lines[i]
		l = l[min(indent, len(l)-len(strings.TrimLeft(l, " "))):]
		b.lines = append(b.lines, l)
	}
	return b, i
}

// parseList reads the items of a list. Lines that are indented as far as an item's text belong to the item.
func parseList(lines []string, i, depth int) (block, int) {
	b := block{kind: list}
	base, _, _ := itemOf(lines[i])
	for i < len(lines) {
		indent, mark, text := itemOf(lines[i])
		if mark == "" || indent != base && (indent < base || indent >= base+2) {
			break
		}
		inner := []string{text}
		room := len(lines[i]) - len(strings.TrimLeft(lines[i], " ")) + 2
		for i++; i < len(lines); i++ {
			l := lines[i]
			lead := len(l) - len(strings.TrimLeft(l, " "))
			if strings.TrimSpace(l) == "" {
				if i+1 < len(lines) && len(lines[i+1])-len(strings.TrimLeft(lines[i+1], " ")) >= room {
					inner = append(inner, "")
					continue
				}
				break
			}
			if lead < room && (startsItem(l) || headingOf(strings.TrimSpace(l)) > 0 || fenceOf(l) != "" ||
				strings.HasPrefix(strings.TrimSpace(l), ">") || isRule(strings.TrimSpace(l))) {
				break
			}
			inner = append(inner, l[min(lead, room+boolInt(len(mark) > 2)):])
		}
		mark, inner[0] = task(mark, inner[0])
		b.items = append(b.items, item{mark, parse(inner, depth+1)})
		for i < len(lines) && strings.TrimSpace(lines[i]) == "" {
			if i+1 >= len(lines) || !startsItem(lines[i+1]) {
				break
			}
			i++
		}
	}
	return b, i
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// task replaces the mark of an item in a task list.
func task(mark, text string) (string, string) {
	switch {
	case strings.HasPrefix(text, "[ ] "):
		return "☐", text[4:]
	case strings.HasPrefix(text, "[x] "), strings.HasPrefix(text, "[X] "):
		return "☑", text[4:]
	}
	return mark, text
}

// fenceOf returns the fence that a line opens, or "".
func fenceOf(l string) string {
	t := strings.TrimLeft(l, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(t) - len(strings.TrimLeft(t, c)); n >= 3 && (c == "~" || !strings.Contains(t[n:], "`")) {
			return t[:n]
		}
	}
	return ""
}

// closes reports whether a line ends fenced code.
func closes(l, fence string) bool {
	t := strings.TrimSpace(l)
	return len(t) >= len(fence) && strings.Trim(t, fence[:1]) == ""
}

// headingOf returns the level of a heading. It returns 0 if the line is not a heading.
func headingOf(t string) int {
	n := len(t) - len(strings.TrimLeft(t, "#"))
	if n == 0 || n > 6 || n < len(t) && t[n] != ' ' {
		return 0
	}
	return n
}

// isRule reports whether a line is a thematic break.
func isRule(t string) bool {
	t = strings.ReplaceAll(t, " ", "")
	return len(t) >= 3 && (strings.Trim(t, "-") == "" || strings.Trim(t, "*") == "" || strings.Trim(t, "_") == "")
}

// startsItem reports whether a line begins an entry of a list.
func startsItem(l string) bool {
	_, mark, _ := itemOf(l)
	return mark != ""
}

// itemOf returns the indentation, mark and text of a list item. mark is "" if the line does not begin an item.
func itemOf(l string) (indent int, mark, text string) {
	t := strings.TrimLeft(l, " ")
	indent = len(l) - len(t)
	if t == "" || isRule(t) {
		return indent, "", ""
	}
	if strings.ContainsRune("-*+", rune(t[0])) && (len(t) == 1 || t[1] == ' ') {
		return indent, "•", strings.TrimLeft(t[1:], " ")
	}
	digits := len(t) - len(strings.TrimLeft(t, "0123456789"))
	if digits == 0 || digits > 9 || digits >= len(t) || t[digits] != '.' && t[digits] != ')' ||
		digits+1 < len(t) && t[digits+1] != ' ' {
		return indent, "", ""
	}
	n, _ := strconv.Atoi(t[:digits]) // nine digits at most
	return indent, strconv.Itoa(n) + t[digits:digits+1], strings.TrimLeft(t[digits+1:], " ")
}
