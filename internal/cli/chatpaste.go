package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A terminal pastes the path of a file that is dropped on it: quoted, with backslashes, or as a file URL, depending on
// the terminal. Such a path of a picture becomes a mention, which attaches it. Every other pasted text stays as it is.

// pictures are the extensions of files whose pasted paths become mentions.
var pictures = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// maxDropped bounds the text that is searched for paths, in bytes.
const maxDropped = 8 << 10

// pasted is pastedImages for a program that draws the screen: text whose files do not answer stays as it is.
func (a *app) pasted(text string) string {
	if found, ok := within(context.Background(), &a.disk, pasteWait, func() string { return pastedImages(text) }); ok {
		return found
	}
	return text
}

// pastedImages replaces a pasted text that consists of paths of pictures only by mentions of them.
func pastedImages(text string) string {
	if len(text) > maxDropped {
		return text
	}
	paths, ok := droppedPaths(strings.TrimSpace(text))
	if !ok || len(paths) == 0 {
		return text
	}
	var b strings.Builder
	for _, p := range paths {
		if u, err := url.Parse(p); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
			p = u.Path
		}
		if !slices.Contains(pictures, strings.ToLower(filepath.Ext(p))) || strings.ContainsAny(p, "\"\n") {
			return text
		}
		if !isPicture(p) {
			return text
		}
		if strings.ContainsFunc(p, unicode.IsSpace) {
			p = `"` + p + `"`
		}
		b.WriteString("@" + p + " ")
	}
	return b.String()
}

// isPicture reports whether a path leads to a file that begins as a picture does. So a link with the name of a picture
// does not attach other files. A file without a size, for example in /proc, is not opened: a read of it can block.
func isPicture(path string) bool {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head) // a short picture is enough
	return strings.HasPrefix(http.DetectContentType(head[:n]), "image/")
}

// droppedPaths splits a text as a shell does: at blanks and line ends, with quotes and backslashes. A text that is a
// file as a whole is one path. ok is false if a quote is not closed.
func droppedPaths(text string) (list []string, ok bool) {
	if st, err := os.Stat(text); err == nil && st.Mode().IsRegular() {
		return []string{text}, true
	}
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && unicode.IsSpace(r):
			if begun {
				list = append(list, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		list = append(list, word.String())
	}
	return list, quote == 0 && !escaped
}
