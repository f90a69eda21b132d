package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The functions of this file write a text for a person who decides about it. The text becomes a JSON string without
// hidden characters. Text outside the quotes always comes from tenon.

const (
	// longRun and longBlankRun are the lengths from which a run of one character, or of one blank, is written as a
	// count. Written out, it could push the rest of the text out of sight.
	longRun      = 64
	longBlankRun = 24
	// maxMarks bounds the marks on one character, which would cover the lines around it.
	maxMarks = 3
)

// judged writes at most limit characters of a text as a JSON string. If limit is 0, it writes all of them. Long runs
// are written as counts: "a" + 2000×" " + "b". whole is false if the end is left out.
func judged(s string, limit int) (shown string, whole bool) { return inRuns(s, limit, jsonRune) }

// inRuns is judged with a function that writes one character. The arguments of the function are the character, its
// bytes, and whether it must be escaped.
func inRuns(s string, limit int, write func(r rune, raw string, escaped bool) string) (shown string, whole bool) {
	var parts []string
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			parts = append(parts, `"`+b.String()+`"`)
			b.Reset()
		}
	}
	rest, left, marks := s, limit, 0
	for rest != "" && (limit == 0 || left > 0) {
		if run, text := firstRun(rest, write); run > 0 {
			end()
			parts = append(parts, text)
			rest, left, marks = rest[run:], left-len(text), 0
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		piece := write(r, rest[:n], marks > maxMarks)
		b.WriteString(piece)
		rest, left = rest[n:], left-len([]rune(piece))
	}
	end()
	if len(parts) == 0 {
		parts = []string{`""`}
	}
	return strings.Join(parts, " + "), rest == ""
}

// jsonRune writes one character inside quotes.
func jsonRune(r rune, raw string, escaped bool) string {
	switch {
	case r == '"':
		return `\"`
	case r == '\\':
		return `\\`
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r == unicode.ReplacementChar && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case escaped, tenon.IsHidden(r), r != ' ' && isBlank(r):
		b := tenon.EscapeJSON([]byte(string(r)))
		if string(b) == string(r) { // EscapeJSON keeps visible characters, but this one looks like others
			return fmt.Sprintf(`\u%04x`, r)
		}
		return string(b)
	}
	return string(r)
}

// plainRune writes one character of a text that is not JSON. Hidden characters have the form of [tenon.Visible], as in
// every other text.
func plainRune(r rune, raw string, escaped bool) string {
	switch {
	case r == '"', r == '\\':
		return string(r)
	case escaped, !isBreak(r) && (tenon.IsHidden(r) || r != ' ' && isBlank(r)):
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return jsonRune(r, raw, false)
}

// isBreak reports whether a character has an escape of one letter.
func isBreak(r rune) bool { return r == '\n' || r == '\t' || r == '\r' }

// isBlank reports whether a character is drawn as an empty space.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\u2800' }

// firstRun returns the number of bytes of the long run of one character that begins a text, and the text to write for
// it. If there is none, n is 0.
func firstRun(s string, write func(rune, string, bool) string) (n int, text string) {
	first, width := utf8.DecodeRuneInString(s)
	if first == unicode.ReplacementChar {
		return 0, "" // invalid bytes may differ from each other
	}
	count := 1
	for strings.HasPrefix(s[count*width:], s[:width]) {
		count++
	}
	if count >= longRun || count >= longBlankRun && isBlank(first) {
		return count * width, fmt.Sprintf(`%d×"%s"`, count, write(first, s[:width], false))
	}
	return 0, ""
}

// digest is a shortened digest for people to compare.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// wholeDigest is the full digest, as sha256sum prints it.
func wholeDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
