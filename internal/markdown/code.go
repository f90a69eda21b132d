package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// highlight colours the lines of code: comments, texts, numbers and keywords. Its rules are common to most languages,
// so it needs no lexer. It looks up keywords only when code is drawn.
func highlight(lines []string, lang string) []line {
	out := make([]line, len(lines))
	lang = strings.ToLower(lang)
	if lang == "diff" || lang == "patch" {
		for i, l := range lines {
			out[i] = line{{text: l, style: diffStyle(l)}}
		}
		return out
	}
	if lang == "" || lang == "text" || lang == "txt" || lang == "console" || lang == "output" {
		for i, l := range lines {
			out[i] = line{{text: l, style: styleCode}}
		}
		return out
	}
	h := &highlighter{comment: commentOf(lang), words: keywords()}
	for i, l := range lines {
		out[i] = h.line(l)
	}
	return out
}

func diffStyle(l string) string {
	switch {
	case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		return styleStrong
	case strings.HasPrefix(l, "+"):
		return "32"
	case strings.HasPrefix(l, "-"):
		return "31"
	case strings.HasPrefix(l, "@@"):
		return styleCode
	}
	return ""
}

// commentOf returns the marker that begins a comment up to the end of the line.
func commentOf(lang string) string {
	switch lang {
	case "py", "python", "sh", "bash", "zsh", "shell", "yaml", "yml", "toml", "rb", "ruby", "perl", "r", "make",
		"makefile", "dockerfile", "elixir", "nix", "hcl", "terraform", "starlark", "powershell":
		return "#"
	case "sql", "lua", "haskell", "hs", "ada":
		return "--"
	case "lisp", "clojure", "scheme", "ini", "asm":
		return ";"
	case "json", "xml", "html", "css", "markdown", "md":
		return "\x00"
	}
	return "//"
}

func keywords() map[string]bool {
	words := map[string]bool{}
	list := "abstract and as async await begin bool boolean break case catch chan char class const continue def " +
		"default defer del delete do done double elif else elsif end enum esac except export extends extern " +
		"false False fi final finally float fn for foreach from func function global go goto if impl " +
		"implements import in include instanceof int interface is lambda let local long loop match mod " +
		"module mut namespace new nil None nonlocal not null number object of or override package pass " +
		"private protected public pub raise range readonly ref require return select self short signed " +
		"sizeof static str string struct super switch template then this throw throws trait true True try " +
		"type typedef typeof union unsigned unless until use using val var virtual void when where while " +
		"with yield SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX " +
		"DROP ALTER JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AS DISTINCT NULL PRIMARY KEY " +
		"WITH UNION CASE WHEN THEN ELSE END "
	for w := range strings.FieldsSeq(list) {
		words[w] = true
	}
	return words
}

// highlighter colours one block of code.
type highlighter struct {
	comment string
	words   map[string]bool
	block   bool // the position is in a comment of several lines
}

func (h *highlighter) line(l string) (out line) {
	put := func(n int, style string) {
		out = append(out, span{text: l[:n], style: style})
		l = l[n:]
	}
	for l != "" {
		r, size := utf8.DecodeRuneInString(l)
		switch {
		case h.block:
			n := len(l)
			if end := strings.Index(l, "*/"); end >= 0 {
				n, h.block = end+2, false
			}
			put(n, styleDim)
		case strings.HasPrefix(l, "/*") && h.comment == "//":
			h.block = true
			put(2, styleDim)
		case strings.HasPrefix(l, h.comment):
			put(len(l), styleDim)
		case r == '"', r == '\'', r == '`':
			put(quotedLength(l), "32")
		case unicode.IsLetter(r) || r == '_':
			n := len(l) - len(strings.TrimLeftFunc(l, isWord))
			style := ""
			if h.words[l[:n]] {
				style = "35"
			}
			put(n, style)
		case unicode.IsDigit(r):
			put(len(l)-len(strings.TrimLeftFunc(l, func(r rune) bool { return isWord(r) || r == '.' })), "33")
		default:
			n := size
			for n < len(l) {
				next, s := utf8.DecodeRuneInString(l[n:])
				if isWord(next) || strings.ContainsRune("\"'`/#-;", next) {
					break
				}
				n += s
			}
			put(n, "")
		}
	}
	return out
}

// quotedLength returns the length of the quoted text at the beginning of a line. If there is no closing quote, it
// returns 1, because the quote may be an apostrophe.
func quotedLength(l string) int {
	for i := 1; i < len(l); i++ {
		switch l[i] {
		case '\\':
			i++
		case l[0]:
			return i + 1
		}
	}
	return 1
}
