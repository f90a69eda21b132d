package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// The function under(path, root) of conditions.
const (
	underName     = "under"
	underOverload = "under_dyn_string"
	// underCost is the cost of one call in a loop, which includes access to the file system.
	underCost = 1000
	// maxPath and maxLinks bound a path, in bytes, and the links in it.
	maxPath  = 4096
	maxLinks = 40
)

// withUnder adds the function under to a language.
func withUnder() cel.EnvOption {
	return cel.Function(underName, cel.Overload(underOverload, []*cel.Type{cel.DynType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(path, root ref.Val) ref.Val {
			p, ok := path.Value().(string)
			if !ok {
				return types.NewErr("under: the path is a %s, not a text", path.Type().TypeName())
			}
			r, ok := root.Value().(string)
			if !ok {
				return types.NewErr("under: the folder is a %s, not a text", root.Type().TypeName())
			}
			is, err := Under(p, r)
			if err != nil {
				return types.NewErr("under: %s", err)
			}
			return types.Bool(is)
		})))
}

// costOfUnder counts the cost of calls of under in loops.
func costOfUnder() cel.ProgramOption {
	n := uint64(underCost)
	return cel.CostTrackerOptions(cost.OverloadTracker(underOverload, func([]ref.Val, ref.Val) *uint64 { return &n }))
}

// Under reports whether a path is root or is below it. It resolves ".." and links in the current file system. Parts
// of the path that do not exist are kept as written.
//
// It returns an error if there is no certain answer: the path is empty, relative or too long; it contains a NUL or a
// hidden character; it goes through /proc, whose links depend on the process; it may be read as another path (see
// [checkDisguise]); or it leads to different places depending on whether ".." is resolved before links or after them.
func Under(path, root string) (bool, error) {
	if err := checkPath("the path", path); err != nil {
		return false, err
	}
	if err := checkDisguise(path); err != nil {
		return false, err
	}
	return Within(path, root)
}

// Within is [Under] for a path that only this program opens. No server can read it differently, so it may contain any
// characters except NUL.
func Within(path, root string) (bool, error) {
	if err := checkPath("the folder", root); err != nil {
		return false, err
	}
	if err := checkPath("the path", path); err != nil {
		return false, err
	}
	at, err := resolvePath(filepath.Clean(root))
	if err != nil {
		return false, err
	}
	// Programs differ in whether they resolve ".." or links first; the system resolves links first.
	is, err := isBelow(filepath.Clean(path), at)
	if err != nil || !hasParent(path) {
		return is, err
	}
	system, err := isBelow(path, at)
	if err != nil {
		return false, err
	}
	if system != is {
		return false, fmt.Errorf("%q has '..' after a link, so it may lead to two places", path)
	}
	return is, nil
}

func checkPath(what, path string) error {
	switch {
	case path == "":
		return errors.New(what + " is empty")
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%s %q has a NUL", what, path)
	case len(path) > maxPath:
		return fmt.Errorf("%s has more than %d bytes", what, maxPath)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%s %q is relative", what, path)
	}
	return nil
}

// hasParent reports whether a path has a part "..".
func hasParent(path string) bool {
	for part := range strings.FieldsFuncSeq(path, isSeparator) {
		if part == ".." {
			return true
		}
	}
	return false
}

func isSeparator(r rune) bool {
	return r == filepath.Separator || r == '/' && runtime.GOOS == "windows"
}

// isBelow reports whether a path is root or below it. Links in root must already be resolved.
func isBelow(path, root string) (bool, error) {
	p, err := resolvePath(path)
	if err != nil {
		return false, err
	}
	if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
		return true, nil
	}
	// The same folder may have several names, for example in different case.
	folder, err := os.Stat(root)
	if err != nil {
		return false, nil
	}
	for {
		if st, err := os.Stat(p); err == nil && os.SameFile(st, folder) {
			return true, nil
		}
		parent := filepath.Dir(p)
		if parent == p {
			return false, nil
		}
		p = parent
	}
}

// resolvePath resolves the links of a path from left to right, as the system does. The rest from the first part that
// does not exist is kept as written.
func resolvePath(path string) (string, error) {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	todo := strings.FieldsFunc(path[len(volume):], isSeparator)
	links, missing := 0, false
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		if next == "/proc" || at == "/proc" {
			return "", fmt.Errorf("%q goes through /proc, which each process sees in its own way", path)
		}
		if missing {
			at = next
			continue
		}
		st, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) || isNoFolder(err):
			missing = true
			at = next
			continue
		case err != nil:
			return "", fmt.Errorf("%q cannot be resolved: %w", path, err)
		case st.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%q has more than %d links", path, maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("%q cannot be resolved: %w", path, err)
		}
		if filepath.IsAbs(target) {
			v := filepath.VolumeName(target)
			at, target = v+string(filepath.Separator), target[len(v):]
		}
		todo = append(strings.FieldsFunc(target, isSeparator), todo...)
	}
	return filepath.Clean(at), nil
}

// isNoFolder reports whether the error says that a part of a path is a file, so that nothing is below it.
func isNoFolder(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && pe.Err == errNoFolder
}
