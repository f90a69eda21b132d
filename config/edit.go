package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// Entry is one entry of a section of tenon.yaml as it is to be written: its keys
// in order, with values that are strings, booleans, numbers, lists of strings, or
// [Fields] and lists of those.
type Entry []Field

// Field is one key of an entry.
type Field struct {
	Key   string
	Value any
}

// Fields is a value with keys of its own.
type Fields []Field

// Change is a change of one entry of a section (servers, tools, secrets).
type Change struct {
	Section, Name string
	Entry         Entry // nil removes it
	Add           bool  // an entry of that name that is there already is an error
	// Keys, in place of Entry, changes these keys of an entry that is there and leaves its
	// others as they are. A dot leads into a key ("policy.timeout"); a nil value removes it.
	Keys []Field

	node *node // in place of Entry: as another program's file has it
}

// Edits is what [Edit] does to a file.
type Edits struct {
	Changes []Change
	User    bool // to the user's own file, not to the project's
	Create  bool // a file that is not there yet is written
}

// Edit changes the project's file, the one that [Load] would take, or the user's
// own: it puts entries in their sections, in place of those of the same name or
// behind the last one, or removes them, and writes the file again. All else stays
// byte for byte: comments, order, blank lines. What the file would be is checked
// before it is written, and it is left as it is where the check fails; a file that
// is broken can be mended that way.
//
// It returns the configuration as it is then, with File and Path of the file that
// was written. Errors: not_found (no file, no such entry), conflict (there is one
// of that name, the file was changed meanwhile), config (what the file would be is
// not valid), invalid (a file that is not tenon.yaml, or written in a way that has no
// place for an entry).
func Edit(ctx context.Context, o Options, e Edits) (*Config, error) {
	p, err := PlanEdit(ctx, o, e)
	if err != nil {
		return nil, err
	}
	return p.Config, p.Write(ctx)
}

// Plan is what an [Edit] would do.
type Plan struct {
	Config        *Config // as it would be
	File          string  // as errors name it
	Before, After []byte  // the file's text

	path string
	mode os.FileMode
}

// PlanEdit finds out what an [Edit] would do, and does nothing. Errors: as there.
func PlanEdit(ctx context.Context, o Options, e Edits) (*Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, err := o.editable(e)
	if err != nil {
		return nil, err
	}
	p := &Plan{File: o.label(path), path: path, mode: 0o644}
	if e.User {
		p.mode = 0o600
	}
	data := []byte("# Check this file with: tenon config validate\nversion: 1\n")
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist) && e.Create:
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s: %s", p.File, reason(err))
	default:
		p.mode = info.Mode().Perm()
		if data, err = readFile(path, maxBytes); err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "%s: %s", p.File, reason(err))
		}
		p.Before = data
	}
	for _, c := range e.Changes {
		if data, err = editBytes(p.File, data, c); err != nil {
			return nil, err
		}
	}
	p.After = data
	files := []file{{src: &source{label: p.File, path: path, dir: filepath.Dir(path)}, data: data}}
	if u := o.userFile(); !o.NoUser && u != "" && u != path && isFile(u) {
		below, err := o.read(context.Background(), u) // a regular file, which nothing is waited for
		if err != nil {
			return nil, err
		}
		files = append(files, file{src: &source{label: o.label(u), path: u, dir: filepath.Dir(u), order: 1, user: true}, data: below})
	}
	if p.Config, err = build(ctx, o, files); err != nil {
		return nil, fmt.Errorf("%s is not changed, because it would not be valid:\n%w", p.File, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, &tenon.Error{Code: tenon.CodeCancelled, Message: p.File + " is not changed: " + err.Error(), Err: err}
	}
	return p, nil
}

// Write does what was planned, unless somebody has changed the file since.
func (p *Plan) Write(ctx context.Context) error {
	now, err := readFile(p.path, maxBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tenon.Errorf(tenon.CodeConfig, "%s: %s", p.File, reason(err))
	}
	if !bytes.Equal(now, p.Before) {
		return tenon.Errorf(tenon.CodeConflict, "%s was changed by somebody else meanwhile; look at it again", p.File)
	}
	if err := ctx.Err(); err != nil {
		return &tenon.Error{Code: tenon.CodeCancelled, Message: p.File + " is not changed: " + err.Error(), Err: err}
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", p.File, err)
	}
	return replaceFile(p.path, p.After, p.mode)
}

// editable returns the path of the file that is to be changed.
func (o Options) editable(e Edits) (string, error) {
	path, _ := o.choose()
	switch {
	case e.User:
		if path = o.userFile(); path == "" {
			return "", tenon.Errorf(tenon.CodeNotFound, "there is no home folder to keep your own configuration in; set HOME")
		}
	case path == "" && e.Create:
		path = filepath.Join(o.Dir, ownNames[0])
	case path == "":
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no file to change: name one with -c FILE, or write one with 'tenon init'")
	case path == "-":
		return "", tenon.Errorf(tenon.CodeInvalid, "stdin cannot be changed; name a file with -c")
	}
	if isForeign(path) {
		return "", tenon.Errorf(tenon.CodeInvalid, "%s is not a tenon.yaml; only that can be changed. 'tenon config import %s --write' makes one of it", o.label(path), o.label(path))
	}
	return path, nil
}

// isForeign reports whether a file has another program's form.
func isForeign(path string) bool {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return true
	}
	data, err := readFile(path, maxBytes)
	if err != nil {
		return false // whoever reads it is told
	}
	return recognise(parse(&source{}, data, &sink{})) != ""
}

// replaceFile writes a file so that another program sees the old or the new one.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	if err := wholefile.Write(path, data, mode); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", path, err)
	}
	return nil
}

// editBytes makes one change. It works on lines, which is what keeps the rest of
// the file as it is.
func editBytes(label string, data []byte, change Change) ([]byte, error) {
	if change.Keys != nil {
		return editKeys(label, data, change)
	}
	section, name, entry := change.Section, change.Name, change.node
	if entry == nil && change.Entry != nil {
		entry = Fields(change.Entry).node()
	}
	s := &sink{}
	root := parse(&source{label: label}, data, s)
	if len(s.errs) > 0 {
		return nil, Errors(sorted(s.errs))
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	body, at := root.get(section)
	_, key := body.get(name)
	if change.Add && key != nil {
		return nil, tenon.Errorf(tenon.CodeConflict, "%s has %s.%s already, in line %d", label, section, name, key.line)
	}
	if entry == nil && key == nil {
		var names []string
		if body != nil {
			for _, k := range body.keys {
				names = append(names, k.val)
			}
		}
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no entry %s.%s%s", label, section, name, near(name, names))
	}
	if root != nil && !root.isNull() && root.col != 1 || at != nil && at.col != 1 {
		return nil, oneLine(label, section)
	}
	switch {
	case at == nil: // a section of its own at the end
		gap := ""
		if len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) != "" {
			gap = "\n"
		}
		return splice(lines, len(lines), len(lines), gap+section+":\n"+block(name, entry, 2)), nil
	case body.isNull():
		if entry == nil || strings.TrimSpace(strings.SplitN(lines[at.line-1], "#", 2)[0]) != section+":" {
			return nil, oneLine(label, section)
		}
		return splice(lines, at.line, at.line, block(name, entry, 2)), nil
	case body.kind != mapNode || len(body.keys) == 0 || body.keys[0].line == at.line:
		return nil, oneLine(label, section)
	}
	indent := body.keys[0].col - 1
	if key == nil {
		last := body.keys[len(body.keys)-1]
		end := blockEnd(lines, last.line, indent)
		return splice(lines, end, end, block(name, entry, indent)), nil
	}
	if strings.TrimSpace(lines[key.line-1][:key.col-1]) != "" {
		return nil, oneLine(label, section)
	}
	end, text := blockEnd(lines, key.line, indent), ""
	if entry != nil {
		text = block(name, entry, indent)
	} else if len(body.keys) == 1 && !commented(lines[at.line:key.line-1]) && !commented(sectionRest(lines[end:])) {
		// The last entry takes the section's own line with it.
		return splice(lines, at.line-1, end, ""), nil
	}
	return splice(lines, key.line-1, end, text), nil
}

func near(name string, names []string) string {
	if n := tenon.Nearest(name, names); n != "" {
		return "; did you mean '" + n + "'?"
	}
	return ""
}

func oneLine(label, section string) error {
	return tenon.Errorf(tenon.CodeInvalid, "%s: '%s' is not written with an entry on lines of its own, so it cannot be changed here; edit the file", label, section)
}

// sectionRest returns the lines up to the next key of the file.
func sectionRest(lines []string) []string {
	for i, l := range lines {
		if l = strings.TrimRight(l, "\r\n"); l != "" && l[0] != ' ' {
			return lines[:i]
		}
	}
	return lines
}

func commented(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "#") })
}

// splice puts text in the place of the lines from (counted from 0) up to but
// without the line to.
func splice(lines []string, from, to int, text string) []byte {
	var b bytes.Buffer
	for _, l := range lines[:from] {
		b.WriteString(l)
	}
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if from > 0 && text != "" && !strings.HasSuffix(lines[from-1], "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(text)
	for _, l := range lines[to:] {
		b.WriteString(l)
	}
	return b.Bytes()
}

// blockEnd returns the number of lines up to the end of the entry that begins on
// a line. Comments and blank lines behind it belong to what follows. The items of a list
// belong to it also where they stand no deeper than its key.
func blockEnd(lines []string, start, indent int) int {
	end := start
	for i := start; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		own := len(lines[i]) - len(text)
		switch text = strings.TrimSpace(text); {
		case text == "", text[0] == '#' && own <= indent:
		case own < indent, own == indent && text != "-" && !strings.HasPrefix(text, "- "):
			return end
		default:
			end = i + 1
		}
	}
	return end
}

// node makes the tree of a value.
func (f Fields) node() *node {
	n := &node{kind: mapNode}
	for _, e := range f {
		n.put(e.Key, valueNode(e.Value))
	}
	return n
}

func valueNode(v any) *node {
	switch v := v.(type) {
	case string:
		return text(v)
	case []string:
		n := &node{kind: listNode}
		for _, s := range v {
			n.vals = append(n.vals, text(s))
		}
		return n
	case Fields:
		return v.node()
	case []Fields:
		n := &node{kind: listNode}
		for _, f := range v {
			n.vals = append(n.vals, f.node())
		}
		return n
	}
	return &node{tag: "!!int", val: fmt.Sprint(v)} // a number, true or false: as it is
}
