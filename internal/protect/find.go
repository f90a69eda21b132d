package protect

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// Find returns the protected path that a text of a command line or of an environment leads
// to, "" for none. The text may hold several paths, as in --config=FILE, HOST:GUEST or a
// command for a shell. A relative path is relative to each of the folders.
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

// Value returns the protected path that one value of a tool call leads to, "" for none.
func (p *Paths) Value(text string, folders ...string) string {
	if p == nil {
		return ""
	}
	f := finder{Paths: p, folders: folders}
	return f.value(text)
}

// JSON returns the first protected path that a text or a key in JSON leads to, "" for none,
// and the text itself.
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

// finder looks at the texts of one call.
type finder struct {
	*Paths
	folders []string
	walker  walker
	seen    map[string]bool
}

// value looks at one text, and at the parts of one that a program would take apart.
func (f *finder) value(text string) string {
	text, _, _ = strings.Cut(text, "\x00") // where C ends a text
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

// part looks at one part of a text, and at what is on both sides of a colon, as in
// HOST:GUEST.
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

// isWeb reports whether a text is a URL whose path another machine has.
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

// spellings looks at a path in every way that it may be written.
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

// spelling looks at a path in one way that it may be written: bare, behind @, in a URL.
func (f *finder) spelling(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	web := isWeb(text)
	if hit := f.path(text, !web); hit != "" { // a program that takes it for a path follows its ..
		return hit
	}
	if web {
		return ""
	}
	if rest, ok := strings.CutPrefix(text, "@"); ok { // as curl takes a file
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

// address looks at the path of a URL, such as file:///srv/tenon.yaml or sqlite:tenon.db.
func (f *finder) address(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || scheme == "" || strings.ContainsAny(scheme, `/\. `) {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	bare := strings.TrimLeft(rest, "/")
	forms := []string{rest, bare, "/" + bare}
	if _, path, ok := strings.Cut(bare, "/"); ok { // behind a host, such as localhost
		forms = append(forms, "/"+path)
	}
	for _, s := range forms {
		if hit := f.path(s, true); hit != "" {
			return hit
		}
	}
	return ""
}

// path looks at one path, from each of the folders. byName says whether protected names
// count.
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

// relative looks at a path that begins in a folder, of which base is the resolved form.
func (f *finder) relative(folder, base, path string, byName bool) string {
	if isName(path) { // one look at the file system
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

// isName reports whether a path is one name.
func isName(path string) bool {
	return path != "." && path != ".." && !strings.ContainsRune(path, filepath.Separator)
}

// resolved looks at a path without links.
func (f *finder) resolved(path string, byName bool) string {
	if hit := f.hit(path, byName); hit != "" {
		return hit
	}
	return f.same(path)
}

// same returns an existing file if it is a protected one under another name.
func (f *finder) same(path string) string {
	if st := f.walker.stat(path); st != nil && st.Mode().IsRegular() && f.sameFile(st) {
		return path
	}
	return ""
}

// expand replaces the home folder and the variables that lead to protected folders.
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
