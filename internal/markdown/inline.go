package markdown

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline reads the styles within a paragraph.
type inline struct {
	out   line
	text  strings.Builder
	style string
	link  string
	no    map[string]int // delimiter → offset before which it has no end
	depth int
}

// maxSpan bounds how far the end of emphasis or of a link may be from its beginning, in bytes.
const maxSpan = 4 << 10

// inlines returns the spans of a paragraph. A line break in a span is a hard break.
func inlines(s, style string) line {
	in := &inline{style: style, no: map[string]int{}}
	in.read(s)
	in.flush()
	return in.out
}

func (in *inline) flush() {
	if in.text.Len() > 0 {
		in.out = append(in.out, span{in.text.String(), in.style, in.link})
		in.text.Reset()
	}
}

// with reads a text in an additional style.
func (in *inline) with(style, link, s string) {
	in.flush()
	before, beforeLink, no := in.style, in.link, in.no
	switch {
	case style == "":
	case before == "":
		in.style = style
	default:
		in.style = before + ";" + style
	}
	in.link = cmp.Or(link, in.link)
	in.depth++
	in.no = map[string]int{}
	in.read(s)
	in.depth--
	in.flush()
	in.style, in.link, in.no = before, beforeLink, no
}

// verbatim writes a text unchanged in an additional style.
func (in *inline) verbatim(style, s string) {
	in.flush()
	before := in.style
	if before != "" {
		style = before + ";" + style
	}
	in.out = append(in.out, span{s, style, in.link})
}

// entities are the entities that models write. Other entities stay as they are.
var entities = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&#39;": "'", "&nbsp;": " "}

func (in *inline) read(s string) {
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '\\':
			if i+1 < len(s) && s[i+1] == '\n' {
				in.text.WriteByte('\n')
				i += 2
			} else if i+1 < len(s) && strings.IndexByte("\\`*_{}[]()#+-.!|~<>&", s[i+1]) >= 0 {
				in.text.WriteByte(s[i+1])
				i += 2
			} else {
				in.text.WriteByte(c)
				i++
			}
		case '\n':
			if strings.HasSuffix(in.text.String(), "  ") {
				in.text.WriteByte('\n')
			} else {
				in.text.WriteByte(' ')
			}
			i++
		case '`':
			i += in.code(s[i:])
		case '*', '_', '~':
			i += in.emphasis(s, i)
		case '[', '!':
			i += in.reference(s[i:])
		case '<':
			i += in.angle(s[i:])
		case 'h':
			i += in.bare(s, i)
		case '&':
			i += in.entity(s[i:])
		default:
			in.text.WriteByte(c)
			i++
		}
	}
}

// literal writes n bytes unchanged.
func (in *inline) literal(s string, n int) int {
	in.text.WriteString(s[:n])
	return n
}

func (in *inline) entity(s string) int {
	if end := strings.IndexByte(s[:min(len(s), 8)], ';'); end > 0 {
		if text, ok := entities[s[:end+1]]; ok {
			in.text.WriteString(text)
			return end + 1
		}
	}
	return in.literal(s, 1)
}

func (in *inline) code(s string) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	rest := s[n:min(len(s), n+maxSpan)]
	for at := 0; ; {
		i := strings.Index(rest[at:], s[:n])
		if i < 0 {
			return in.literal(s, n)
		}
		i += at
		run := len(rest[i:]) - len(strings.TrimLeft(rest[i:], "`"))
		if run != n {
			at = i + run
			continue
		}
		text := strings.ReplaceAll(rest[:i], "\n", " ")
		if strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") && strings.TrimSpace(text) != "" {
			text = text[1 : len(text)-1]
		}
		in.verbatim(styleCode, text)
		return n + i + n
	}
}

// emphasis reads *emphasis*, **strong**, ***both*** and ~~strikethrough~~ at an offset of a text.
func (in *inline) emphasis(s string, at int) int {
	c := s[at : at+1]
	n := len(s[at:]) - len(strings.TrimLeft(s[at:], c))
	delimiter := s[at : at+n]
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+n:])
	opens := at+n < len(s) && !unicode.IsSpace(after) && (c != "_" || !isWord(before)) && n <= 3 && (c != "~" || n == 2)
	if !opens || in.depth > maxDepth || in.no[delimiter] > at {
		return in.literal(s[at:], n)
	}
	from, limit := at+n, min(len(s), at+n+maxSpan)
	for i := from; i < limit; {
		if s[i] == '`' { // no emphasis ends in code
			run := len(s[i:limit]) - len(strings.TrimLeft(s[i:limit], "`"))
			end := strings.Index(s[i+run:limit], s[i:i+run])
			if end < 0 {
				i += run
			} else {
				i += run + end + run
			}
			continue
		}
		if s[i] == '\\' {
			i += 2
			continue
		}
		if s[i] != c[0] {
			i++
			continue
		}
		run := len(s[i:limit]) - len(strings.TrimLeft(s[i:limit], c))
		last, _ := utf8.DecodeLastRuneInString(s[:i])
		next, _ := utf8.DecodeRuneInString(s[i+run:])
		if run == n && i > from && !unicode.IsSpace(last) && (c != "_" || !isWord(next)) {
			style := map[string]string{"~~": styleStrike, "1": styleEmph, "2": styleStrong,
				"3": styleStrong + ";" + styleEmph}[key(c, n)]
			in.with(style, "", s[from:i])
			return i + n - at
		}
		i += run
	}
	in.no[delimiter] = limit
	return in.literal(s[at:], n)
}

func key(c string, n int) string {
	if c == "~" {
		return "~~"
	}
	return string(rune('0' + n))
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

// reference reads [text](address) and ![description](address). It shows the address if the address differs from the
// text.
func (in *inline) reference(s string) int {
	picture := strings.HasPrefix(s, "![")
	if s[0] == '!' && !picture || in.depth > maxDepth {
		return in.literal(s, 1)
	}
	from := 1 + boolInt(picture)
	window := s[:min(len(s), maxSpan)]
	if in.no["["] > 0 && len(window) > in.no["["] {
		return in.literal(s, 1)
	}
	depth, end := 1, -1
	for i := from; i < len(window) && end < 0; i++ {
		switch window[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || end+1 >= len(window) || window[end+1] != '(' {
		return in.literal(s, from)
	}
	stop, depth := -1, 0
	for i := end + 1; i < len(window) && stop < 0; i++ {
		switch window[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				stop = i
			}
		case '\n':
			i = len(window)
		}
	}
	if stop < 0 {
		return in.literal(s, from)
	}
	address, _, _ := strings.Cut(strings.TrimSpace(window[end+2:stop]), " ")
	address = strings.Trim(address, "<>")
	text := window[from:end]
	if picture {
		in.verbatim(styleDim, "[image: "+strings.ReplaceAll(text, "\n", " ")+"]")
	} else {
		in.with(styleLink, safeLink(address), text)
	}
	if address != "" && address != text {
		in.verbatim(styleDim, " ("+address+")")
	}
	return stop + 1
}

// angle reads <https://example.org>. Other tags remain text.
func (in *inline) angle(s string) int {
	if end := strings.IndexAny(s[:min(len(s), maxSpan)], "> \n"); end > 1 && s[end] == '>' {
		if link := safeLink(s[1:end]); link != "" {
			in.linked(link)
			return end + 1
		}
	}
	return in.literal(s, 1)
}

// bare reads an address without marks around it.
func (in *inline) bare(s string, at int) int {
	if !strings.HasPrefix(s[at:], "http://") && !strings.HasPrefix(s[at:], "https://") || in.link != "" {
		return in.literal(s[at:], 1)
	}
	if before, _ := utf8.DecodeLastRuneInString(s[:at]); at > 0 && isWord(before) {
		return in.literal(s[at:], 1)
	}
	end := strings.IndexAny(s[at:], " \n<>\"`|*")
	if end < 0 {
		end = len(s) - at
	}
	address := strings.TrimRight(s[at:at+end], ".,;:!?'")
	if strings.HasSuffix(address, ")") && !strings.Contains(address, "(") {
		address = strings.TrimRight(address, ")")
	}
	if link := safeLink(address); link != "" && len(address) > len("https://") {
		in.linked(link)
		return len(address)
	}
	return in.literal(s[at:], 1)
}

// linked writes an address as a link to itself.
func (in *inline) linked(link string) {
	in.flush()
	style := styleLink
	if in.style != "" {
		style = in.style + ";" + style
	}
	in.out = append(in.out, span{link, style, link})
}
