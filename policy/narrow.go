package policy

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Narrower is a condition that matches a given call and similar later calls of its tool.
type Narrower struct {
	If  string   `json:"if"`            // CEL over args
	Any []string `json:"any,omitempty"` // arguments that the condition does not restrict
}

const (
	maxNarrowText = 200  // bytes of a text that a condition contains
	maxNarrower   = 1000 // bytes of a condition that is offered
)

// Narrow makes a condition from the arguments of a call. A path must be in the same folder, or in one of the given
// folders if the call's path is in it. Any other plain value must be equal. Lists, objects and long texts are not
// restricted. Narrow returns nil if the condition would be too long, or does not match the call.
func Narrow(raw json.RawMessage, folders ...string) *Narrower {
	args, err := decode(raw)
	if err != nil {
		return nil
	}
	n := &Narrower{}
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if term := narrowTerm(argument(name), args[name], folders); term != "" {
			terms = append(terms, term)
		} else {
			n.Any = append(n.Any, name)
		}
	}
	n.If = strings.Join(terms, " && ")
	if n.If == "" || len(n.If) > maxNarrower {
		return nil
	}
	l, err := NewArgumentLanguage()
	if err != nil {
		return nil
	}
	c, err := l.Condition(n.If)
	if err != nil {
		return nil
	}
	if holds, err := c.Holds(&Facts{Arguments: raw}); err != nil || !holds {
		return nil
	}
	return n
}

// narrowTerm returns the part of a condition about one argument, or "" if the argument is not restricted.
func narrowTerm(name string, value any, folders []string) string {
	switch v := value.(type) {
	case nil:
		return name + " == null"
	case bool:
		return name + " == " + strconv.FormatBool(v)
	case int64:
		return name + " == " + strconv.FormatInt(v, 10)
	case uint64:
		return name + " == " + strconv.FormatUint(v, 10) + "u"
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return ""
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return name + " == " + text
	case string:
		if folder := narrowFolder(v, folders); folder != "" {
			return underName + "(" + name + ", " + strconv.Quote(folder) + ")"
		}
		if len(v) <= maxNarrowText && !strings.ContainsAny(v, "\n\r") {
			return name + " == " + strconv.Quote(v)
		}
	}
	return ""
}

// narrowFolder returns the folder to which a path is restricted, or "" if the text is not a path.
func narrowFolder(path string, folders []string) string {
	if checkPath("", path) != nil {
		return ""
	}
	folder := filepath.Dir(filepath.Clean(path))
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		folder = filepath.Clean(path)
	}
	for _, f := range folders {
		if is, err := Under(path, f); err == nil && is {
			folder = f
			break
		}
	}
	if is, err := Under(path, folder); err != nil || !is || filepath.Dir(folder) == folder {
		return ""
	}
	return folder
}

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the words that CEL does not allow after a dot.
var reserved = strings.Fields("as break const continue else false for function if import in let loop namespace null " +
	"package return true var void while")

// argument returns the CEL expression for an argument.
func argument(name string) string {
	if identifier().MatchString(name) && !slices.Contains(reserved, name) {
		return "args." + name
	}
	return "args[" + strconv.Quote(name) + "]"
}
