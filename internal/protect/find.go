package protect

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// Find returns the protected path to which a text of a command line or an environment leads, or "". The text may
// contain several paths, as in --config=FILE, HOST:GUEST or a shell command. A relative path is tried in each of the
// folders.
func (p *Paths) Find(text string, folders ...string) string {
	if p == nil {
		return ""
	}
	f := finder{Paths: p, folders: folders}
	if hit := f.value(text); hit != "" {
		return hit
	}
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`<>|&;()", r) }) {
		if hit := f.value(word); hit != "" {
			return hit
		}
	}
	return ""
}

// Value returns the protected path to which one value of a tool call leads, or "".
func (p *Paths) Value(text string, folders ...string) string {
	if p == nil {
		return ""
	}
	f := finder{Paths: p, folders: folders}
	return f.value(text)
}

// JSON returns the first protected path to which a text or a key in JSON leads, and the text. It returns "" if there
// is none.
func (p *Paths) JSON(raw json.RawMessage, folders ...string) (path, text string) {
	if p == nil {
		return "", ""
	}
	f := finder{Paths: p, folders: folders}
	for t := range rawjson.Strings(raw) {
		text := rawjson.String(raw[t.From:t.To])
		if hit := f.value(text); hit != "" {
			return hit, text
		}
	}
	return "", ""
}

// finder checks the texts of one call.
type finder struct {
	*Paths
	folders []string
	walker  walker
	seen    map[string]bool
}

// value checks a text, and the parts into which a program may split it.
func (f *finder) value(text string) string {
	text, _, _ = strings.Cut(text, "\x00") // a C program sees the text only up to a NUL
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	if text == "" || len(text) > maxPath || strings.ContainsAny(text, "\n\r") || f.seen[text] {
		return ""
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	if len(f.seen) < maxSeen {
		f.seen[text] = true
	}
	if hit := f.spellings(text); hit != "" {
		return hit
	}
	if strings.ContainsAny(text, " \t") || !strings.ContainsAny(text, "=,;:-") {
		return ""
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("=,;", r) }) {
		if hit := f.part(part, part != text); hit != "" {
			return hit
		}
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' { // -cFILE
		return f.spellings(text[2:])
	}
	return ""
}

// part checks one part of a text, and the texts on both sides of each colon in it, as in HOST:GUEST.
func (f *finder) part(text string, whole bool) string {
	if whole {
		if hit := f.spellings(text); hit != "" {
			return hit
		}
	}
	if isWeb(text) {
		return ""
	}
	for side := range strings.SplitSeq(text, ":") {
		if side != text {
			if hit := f.spellings(side); hit != "" {
				return hit
			}
		}
	}
	return ""
}

// isWeb reports whether a text is a URL with a path on another machine.
func isWeb(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme[strings.LastIndexByte(scheme, '=')+1:]) {
	case "http", "https", "ws", "wss":
		return true
	}
	return false
}

// spellings checks a path in every encoding in which it may be written.
func (f *finder) spellings(text string) string {
	for range 3 { // unchanged, decoded, and decoded twice
		if hit := f.spelling(text); hit != "" {
			return hit
		}
		again := decoded(text)
		if again == text {
			break
		}
		text = again
	}
	return ""
}

// spelling checks a path in the forms in which it may be written: bare, after @, and in a URL.
func (f *finder) spelling(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	web := isWeb(text)
	if hit := f.path(text, !web); hit != "" { // a program that treats the text as a path resolves its ..
		return hit
	}
	if web {
		return ""
	}
	if rest, ok := strings.CutPrefix(text, "@"); ok { // curl reads a file after @
		if hit := f.path(rest, true); hit != "" {
			return hit
		}
	}
	return f.address(text)
}

// decoded decodes %-encoding. A text without valid encoding is returned unchanged.
func decoded(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if s, err := url.PathUnescape(text); err == nil {
		return s
	}
	return text
}

// address checks the path of a URL, such as file:///srv/tenon.yaml or sqlite:tenon.db.
func (f *finder) address(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || scheme == "" || strings.ContainsAny(scheme, `/\. `) {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	bare := strings.TrimLeft(rest, "/")
	forms := []string{rest, bare, "/" + bare}
	if _, path, ok := strings.Cut(bare, "/"); ok { // after a host, such as localhost
		forms = append(forms, "/"+path)
	}
	for _, s := range forms {
		if hit := f.path(s, true); hit != "" {
			return hit
		}
	}
	return ""
}

// path checks one path in each of the folders. byName sets whether protected names are checked, too.
func (f *finder) path(text string, byName bool) string {
	if text == "" {
		return ""
	}
	if strings.Contains(text, `\`) && filepath.Separator != '\\' {
		if hit := f.path(strings.ReplaceAll(text, `\`, "/"), byName); hit != "" {
			return hit
		}
	}
	text = filepath.FromSlash(f.expand(text))
	if filepath.IsAbs(text) {
		return f.absolute(text, byName)
	}
	for _, folder := range f.folders {
		if hit := f.relative(folder, f.base(folder), text, byName); hit != "" {
			return hit
		}
	}
	return ""
}

// absolute checks an absolute path as it is written and with its links resolved.
func (f *finder) absolute(path string, byName bool) string {
	if hit := f.hit(filepath.Clean(path), byName); hit != "" {
		return hit
	}
	return f.resolved(f.walker.resolve(path), byName)
}

// relative checks a path relative to a folder. base is the folder with its links resolved.
func (f *finder) relative(folder, base, path string, byName bool) string {
	if isName(path) { // a single look at the file system is enough
		name := base + string(filepath.Separator) + path
		if hit := f.hit(name, byName); hit != "" || !f.walker.isLink(name) {
			return cmp.Or(hit, f.same(name))
		}
	}
	if hit := f.hit(filepath.Join(folder, path), byName); hit != "" {
		return hit
	}
	return f.resolved(f.walker.from(base, path), byName)
}

// isName reports whether a path is a single name.
func isName(path string) bool {
	return path != "." && path != ".." && !strings.ContainsRune(path, filepath.Separator)
}

// resolved checks a path without links.
func (f *finder) resolved(path string, byName bool) string {
	if hit := f.hit(path, byName); hit != "" {
		return hit
	}
	return f.same(path)
}

// same returns the path of an existing file if it is a protected file under another name, or "".
func (f *finder) same(path string) string {
	if st := f.walker.stat(path); st != nil && st.Mode().IsRegular() && f.sameFile(st) {
		return path
	}
	return ""
}

// expand replaces ~ and variables that lead to protected folders.
func (f *finder) expand(text string) string {
	if rest, ok := strings.CutPrefix(text, "~"); ok && (rest == "" || rest[0] == '/') {
		if home, _ := f.lookup("HOME"); home != "" {
			return home + rest
		}
	}
	if !strings.Contains(text, "$") {
		return text
	}
	for _, name := range []string{"HOME", "PWD", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TENON_CONFIG"} {
		if v, ok := f.lookup(name); ok && v != "" {
			text = strings.ReplaceAll(text, "${"+name+"}", v)
			text = strings.ReplaceAll(text, "$"+name, v)
		}
	}
	return text
}
