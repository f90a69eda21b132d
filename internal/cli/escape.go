package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// Text from servers and models may contain sequences that move the cursor, set the window's title, or change the
// direction of text. A terminal would then show something else. All such text is escaped: by these functions when it is
// put into another text, and by the screen (screen.go) when it is written.

// safeText escapes hidden characters in text of several lines. It keeps line breaks, tabs and the joiners of scripts
// and emoji.
func safeText(s string) string { return escape(s, isSafe) }

func isSafe(r rune) bool {
	return r == '\n' || r == '\t' || !tenon.IsHidden(r) || r == '\u200c' || r == '\u200d'
}

// safeLine escapes hidden characters, line breaks and all blanks but spaces. It keeps the joiner between two emoji,
// which a terminal draws as one. It is for one line, and for arguments that a person decides about.
func safeLine(s string) string {
	return escape(s, func(r rune) bool { return !tenon.IsHidden(r) && (r == ' ' || !unicode.IsSpace(r)) })
}

func escape(s string, keep func(rune) bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !keep(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case keep(r):
			b.WriteString(s[i : i+n])
		case r == '\r' && strings.HasPrefix(s[i+n:], "\n") && keep('\n'):
			// CRLF becomes LF
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == joiner && joinsEmoji(s, i):
			b.WriteString(s[i : i+n])
		default:
			fmt.Fprintf(&b, `\u{%x}`, r) // as tenon.Visible does
		}
		i += n
	}
	return b.String()
}

// joiner is the zero width joiner.
const joiner = '\u200d'

// joinsEmoji reports whether the joiner at byte i of a text is between two emoji, as in families and professions.
// There it hides nothing.
func joinsEmoji(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+len(string(joiner)):])
	isTone := before >= 0x1f3fb && before <= 0x1f3ff
	return (isTone || before == '\ufe0f' || isEmoji(before)) && isEmoji(after)
}

// isEmoji reports whether a character can be a part of an emoji sequence (Unicode Technical Standard 51).
func isEmoji(r rune) bool { return r >= 0x2190 && r != utf8.RuneError && unicode.Is(unicode.So, r) }

// shorten cuts a text to at most n columns of a terminal.
func shorten(s string, n int) string {
	if len(s) <= n || breadth(s) <= n {
		return s
	}
	taken := 0
	for i, r := range s {
		if taken += breadthOf(r); taken > max(n-1, 0) {
			return s[:i] + "…"
		}
	}
	return s
}
