package policy

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon"
)

// maxUnfold is how often a path is decoded: %252e becomes a dot after two rounds.
const maxUnfold = 4

// alike replaces characters that some servers normalize by their normal forms.
var alike = strings.NewReplacer(`\`, "/", "／", "/", "⁄", "/", "∕", "/", "＼", "/", "．", ".", "․", ".", "﹒", ".", "‥",
	"..", "…", "...")

// checkDisguise returns an error for a path that a server may read differently from this machine: as a path with
// "..", or with another end. Examples are a ".." in percent codes, with another separator, in lookalike characters,
// or with blanks or a parameter around it. Servers differ in how they read such paths, and no honest caller writes
// one.
func checkDisguise(path string) error {
	for _, r := range path {
		if tenon.IsHidden(r) || unicode.IsControl(r) {
			return fmt.Errorf("%q has a character that is not seen", path)
		}
	}
	plain := path
	for range maxUnfold {
		next := alike.Replace(unescaped(plain))
		if next == plain {
			break
		}
		plain = next
	}
	up := 0
	for part := range strings.FieldsFuncSeq(path, isSeparator) {
		if part == ".." {
			up++
		}
	}
	if strings.ContainsRune(plain, 0) || parents(plain) > up {
		return fmt.Errorf("%q may be read as another path, %q", path, plain)
	}
	return nil
}

// parents counts the parts of a path that are "..", or that some servers treat as "..".
func parents(path string) (n int) {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || isSeparator(r) }) {
		if name, _, _ := strings.Cut(part, ";"); strings.TrimSpace(name) == ".." {
			n++
		}
	}
	return n
}

// unescaped decodes the percent codes of a path. Other percent signs stay.
func unescaped(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			high, ok := nibble(path[i+1])
			low, also := nibble(path[i+2])
			if ok && also {
				b = append(b, high<<4|low)
				i += 2
				continue
			}
		}
		b = append(b, path[i])
	}
	return string(b)
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
