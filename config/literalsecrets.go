package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
)

// This file finds the secrets that are written into a configuration as literals. Package servers judges a value by the
// names of its key and by its form; see [servers.SecretParts]. A name counts only where the file's author chose it or a
// program gave it: as a variable, a header, an argument or a setting. Elsewhere a key such as secret contains a name.

// keyedMaps returns the keys of maps whose keys are names of variables, headers, settings and arguments. In tenon.yaml
// these are the maps of texts in which variables are expanded, and the maps of values of any form.
var keyedMaps = sync.OnceValue(func() map[string]bool {
	keys := map[string]bool{"environment": true, "query": true} // in files of other programs
	for _, patterns := range []map[string]bool{expands, expandsJSON} {
		for pattern := range patterns {
			if name, ok := strings.CutSuffix(pattern, ".NAME"); ok {
				keys[name[strings.LastIndexByte(name, '.')+1:]] = true
			}
		}
	}
	anyMaps(reflect.TypeFor[Config](), keys, map[reflect.Type]bool{})
	return keys
})

// anyMaps adds the keys of a config struct, and of the structs in it, whose values map names to values of any form.
func anyMaps(t reflect.Type, keys map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for _, f := range fields(t) {
		if f.typ.Kind() == reflect.Map && f.typ.Elem() == rawType {
			keys[f.name] = true
		}
		anyMaps(f.typ, keys, seen)
	}
}

// literalNames returns the names that judge the literal at a path.
func literalNames(path string) []string {
	parts := strings.Split(path, ".")
	for i, part := range parts[:len(parts)-1] {
		part, _, _ = strings.Cut(part, "[")
		if keyedMaps()[part] && i+1 < len(parts) {
			last, _, _ := strings.Cut(parts[len(parts)-1], "[")
			return []string{last}
		}
	}
	return nil
}

// isKeyFile reports whether a value is the path of an existing file, which names a secret and is none.
func isKeyFile(value string) bool { return filepath.IsAbs(value) && isFile(value) }

// literalParts returns the secret parts of a literal.
func literalParts(value string, names ...string) []string {
	if isKeyFile(value) {
		return nil
	}
	return servers.SecretParts(value, names...)
}

// maskLiteral returns a literal with its secret parts masked.
func maskLiteral(value string, names ...string) string {
	if isKeyFile(value) {
		return value
	}
	return servers.MaskValue(value, names...)
}

// writtenSecrets calls found with each part of a literal in a tree that is a secret. named says that the keys of the
// map are names of variables, headers or settings.
func writtenSecrets(n *tree.Node, key string, named bool, found func(string)) {
	if n == nil {
		return
	}
	switch n.Kind {
	case tree.Map:
		for i, v := range n.Vals {
			k := n.Keys[i].Val
			writtenSecrets(v, k, named || keyedMaps()[k], found)
		}
	case tree.List:
		var args []string
		for _, v := range n.Vals {
			writtenSecrets(v, key, named, found)
			if v.Kind == tree.Scalar {
				args = append(args, v.Val)
			}
		}
		if key == "args" || key == "command" {
			for _, part := range servers.SecretArgs(args) {
				found(part)
			}
		}
	case tree.Scalar:
		if n.IsNull() {
			return
		}
		var names []string
		if named {
			names = []string{key}
		}
		for _, part := range literalParts(n.Val, names...) {
			found(part)
		}
	}
}

// minShown is the minimum length of a secret that is masked in the text of a file. Shorter ones occur in other words.
const minShown = 4

var assignment = lazyregexp.New(`(?m)^([ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=)([^\r\n]+)`)

// MaskText returns the text of a configuration file or of a .env file with its literal secrets masked.
func MaskText(text string) string {
	var all []string
	add := func(part string) {
		if len(part) < minShown {
			return
		}
		quoted := strconv.Quote(part)
		all = append(all, part, quoted[1:len(quoted)-1], strings.ReplaceAll(part, "'", "''"))
	}
	if root := tree.Parse(&tree.Source{}, []byte(text), &tree.Sink{}); root != nil && root.Kind != tree.Scalar {
		writtenSecrets(root, "", false, add)
	} else {
		text = maskAssignments(text)
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, part := range slices.Compact(all) {
		text = strings.ReplaceAll(text, part, "***")
	}
	return text
}

// maskAssignments masks the values of a .env file.
func maskAssignments(text string) string {
	return assignment().ReplaceAllStringFunc(text, func(line string) string {
		m := assignment().FindStringSubmatch(line)
		return m[1] + servers.MaskValue(strings.Trim(m[3], `"'`), m[2])
	})
}

// Masked returns the change with literal secrets of both texts masked.
func (f FileChange) Masked() FileChange {
	if !f.Binary {
		f.Before, f.After = MaskText(f.Before), MaskText(f.After)
	}
	return f
}

// MaskedFiles returns the changes with literal secrets masked.
func MaskedFiles(list []FileChange) []FileChange {
	out := make([]FileChange, len(list))
	for i, f := range list {
		out[i] = f.Masked()
	}
	return out
}

// maskJSON returns JSON of the file with the values of members that are secrets masked.
func maskJSON(text string) string {
	return jsonMember().ReplaceAllStringFunc(text, func(found string) string {
		m := jsonMember().FindStringSubmatch(found)
		value, err := strconv.Unquote(m[3])
		if err != nil || maskLiteral(value, m[2]) == value {
			return found
		}
		return m[1] + strconv.Quote(maskLiteral(value, m[2]))
	})
}

var jsonMember = lazyregexp.New(`("((?:[^"\\]|\\.)*)"\s*:\s*)("(?:[^"\\]|\\.)*")`)
