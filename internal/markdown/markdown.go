// Package markdown draws Markdown on a terminal: wrapped at words, with styles, fitted tables, coloured code and links.
//
//	answer of a model ─► Render ─► lines with escape sequences ─► tenon chat, tenon run
//
// The text comes from models and servers, so nothing in it reaches the terminal unseen: hidden characters are written
// as by [tenon.Visible], HTML stays text, and a link shows its address. A picture is its description and its address.
//
// It reads the part of CommonMark and GitHub's tables that models write: headings, paragraphs, lists, task lists,
// quotes, fenced code, tables, rules, emphasis, code, strikethrough, links. It has no indented code and no reference
// links. It is not a converter to HTML. Answers are drawn while they arrive, many times a second: [Stable] returns how
// much of a text cannot change any more, so that a caller draws only the rest again.
//
// The package is our own because goldmark, the usual parser, adds 0.8 MB to the binary and 2 ms to the start of every
// command (docs/decisions/0002-dependencies.md). Work is linear in the text, and nesting is bounded.
package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/tenonhq/tenon"
)

// Options configures how a text is drawn.
type Options struct {
	Width int  // columns; less than 8 counts as 8
	Links bool // also write links as OSC 8
	Plain bool // use no styles
}

// SGR parameters (ECMA-48) for the parts of a text. They use the 16 colours of the terminal, which are readable on
// light and dark backgrounds.
const (
	styleStrong  = "1"
	styleEmph    = "3"
	styleStrike  = "9"
	styleCode    = "36"
	styleHeading = "1;36"
	styleDim     = "2"
	styleLink    = "4"
)

// span is a piece of text with one style.
type span struct {
	text  string
	style string // SGR parameters
	link  string // address of a link, safe for OSC 8
}

// line is a line of the terminal, or of the text before it is wrapped.
type line []span

// Width returns the columns that a text occupies on a terminal. It counts graphemes, as the terminal program does.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// plain reports whether a text is only printable ASCII, which most texts are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Render draws a text. Each line is at most the width of the options, and styles end with their line.
func Render(text string, o Options) []string {
	o.Width = max(o.Width, 8)
	text = tenon.Visible(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	text = strings.ReplaceAll(text, "\t", "    ")
	r := &renderer{}
	r.blocks(parse(strings.Split(text, "\n"), 0), o.Width, 0)
	out := make([]string, len(r.out))
	for i, l := range r.out {
		out[i] = l.draw(o)
	}
	return out
}

// draw writes the escape sequences of a line.
func (l line) draw(o Options) string {
	var b strings.Builder
	for _, s := range l {
		if s.text == "" {
			continue
		}
		if o.Plain {
			b.WriteString(s.text)
			continue
		}
		if s.link != "" && o.Links {
			b.WriteString("\x1b]8;;" + s.link + "\x1b\\")
		}
		if s.style != "" {
			b.WriteString("\x1b[" + s.style + "m" + s.text + "\x1b[0m")
		} else {
			b.WriteString(s.text)
		}
		if s.link != "" && o.Links {
			b.WriteString("\x1b]8;;\x1b\\")
		}
	}
	return b.String()
}

// width returns the columns of a line.
func (l line) width() int {
	n := 0
	for _, s := range l {
		n += Width(s.text)
	}
	return n
}

// most bounds the part of a text after the length that [Stable] returns, in bytes. A longer paragraph is split at the
// end of a line.
const most = 32 << 10

// Stable returns the length of the part of a text that later text cannot change. This part consists of whole blocks. It
// ends before the last empty line that is outside of fenced code and that no list or quote continues after. It returns
// 0 if there is no such part.
func Stable(text string) int {
	stable, fence := 0, ""
	blank := false
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		l := text[at : at+end]
		next := min(at+end+1, len(text))
		switch mark := fenceOf(l); {
		case fence != "":
			if closes(l, fence) {
				fence = ""
			}
		case mark != "":
			if blank {
				stable = at
			}
			fence = mark
		case strings.TrimSpace(l) == "":
			blank = true
			at = next
			continue
		case blank && !strings.HasPrefix(l, " ") && !startsItem(l) && !strings.HasPrefix(l, ">"):
			stable = at
		}
		blank = false
		if fence == "" && len(l) > 2*most { // a very long line
			for stable = at + most; stable > 0 && !utf8.RuneStart(text[stable]); stable-- {
			}
			return stable
		}
		if next-stable > most && fence == "" && next < len(text) {
			stable = next
		}
		at = next
	}
	return stable
}

// safeLink returns an address that a terminal may open, or "". It accepts only web and mail addresses of printable
// ASCII characters.
func safeLink(s string) string {
	low := strings.ToLower(s)
	if !strings.HasPrefix(low, "https://") && !strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "mailto:") {
		return ""
	}
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || r == '\\' {
			return ""
		}
	}
	return s
}

// Cut returns the beginning of a text that fits a width. It returns at least one character, unless the text is empty.
func Cut(s string, width int) string {
	if head := fitting(s, width); head != "" {
		return head
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// perColumn bounds the bytes that are examined for each column, so that the work for a very long line is bounded. A
// character with more combining marks is cut.
const perColumn = 64

// fitting returns the beginning of a text that fits a width, or "" if not even one character does.
func fitting(s string, width int) string {
	if width < 1 {
		return ""
	}
	if len(s) <= width && plain(s) {
		return s
	}
	if len(s) > width && plain(s[:width+1]) {
		return s[:width]
	}
	if most := (width + 1) * perColumn; len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	return ansi.Truncate(s, width, "")
}

// Strip returns a drawn line without its escape sequences.
func Strip(s string) string { return ansi.Strip(s) }
