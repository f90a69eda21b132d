package safezip

import (
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenonhq/tenon"
)

// checkName returns the reason why a name is refused, or "". The name of a folder ends in a slash.
func checkName(name string) string {
	plain := strings.TrimSuffix(name, "/")
	switch {
	case len(name) > maxName:
		return "of more than 1000 bytes"
	case !utf8.ValidString(name):
		return "that is not UTF-8"
	case strings.ContainsFunc(name, isHidden):
		return "with hidden characters"
	case plain == "" || plain == "." || !fs.ValidPath(plain) || strings.ContainsAny(plain, `\:`), climbs(plain):
		return "outside the pack: it leads out of its folder"
	}
	return ""
}

// isHidden reports whether a character is refused in names. The joiners belong to scripts and emoji; two
// names must not differ only by them.
func isHidden(r rune) bool { return tenon.IsHidden(r) && r != '\u200c' && r != '\u200d' }

// climbs reports whether a compatibility form of a name has a component "..".
func climbs(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			parts := strings.FieldsFunc(norm.NFKC.String(name), func(r rune) bool { return r == '/' || r == '\\' })
			return slices.Contains(parts, "..")
		}
	}
	return false
}

// folded is a name as file systems compare it.
type folded struct {
	key  string // components end in NUL, so that a folder sorts directly before its files
	file int32
}

// foldName returns the key of a name: without case, width, joiners, and dots and spaces at the end of
// components. Windows and macOS treat names with the same key as one file.
func foldName(name string) string {
	name = strings.TrimSuffix(name, "/")
	ascii := strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if ascii {
		name = strings.ToLower(name)
	} else {
		name = norm.NFKC.String(strings.ToLower(strings.ToUpper(norm.NFKC.String(name))))
		name = strings.NewReplacer("\u200c", "", "\u200d", "").Replace(name)
	}
	if !strings.ContainsAny(name, ". ") {
		return strings.ReplaceAll(name, "/", "\x00")
	}
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = strings.TrimRight(p, ". ")
	}
	return strings.Join(parts, "\x00")
}

// checkNames refuses names that are one file on some file system. Folders may occur repeatedly.
func (a *Archive) checkNames() error {
	keys := make([]folded, len(a.files))
	for i := range a.files {
		keys[i] = folded{foldName(a.files[i].Name), int32(i)}
	}
	slices.SortFunc(keys, func(x, y folded) int { return strings.Compare(x.key, y.key) })
	for i := 1; i < len(keys); i++ {
		x, y := &a.files[keys[i-1].file], &a.files[keys[i].file]
		same := keys[i-1].key == keys[i].key
		switch {
		case same && x.folder && y.folder:
		case same && x.Name == y.Name:
			return a.bad("the file '%s' occurs twice", shown(x.Name))
		case same && x.folder != y.folder, !x.folder && strings.HasPrefix(keys[i].key, keys[i-1].key+"\x00"):
			name := x.Name
			if x.folder {
				name = y.Name
			}
			return a.bad("'%s' is both a file and a folder", shown(name))
		case same:
			return a.bad("'%s' and %s are the same file if case is ignored", shown(y.Name), shown(x.Name))
		}
	}
	return nil
}
