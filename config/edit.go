package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/filelock"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// Entry is an entry of a section of tenon.yaml to be written: its keys in order. Values are strings, booleans,
// numbers, lists of strings, [Fields], or lists of [Fields].
type Entry []Field

// Field is one key of an entry.
type Field struct {
	Key   string
	Value any
}

// Fields is an ordered map.
type Fields []Field

// Change is a change of one entry of a section (servers, tools, secrets). If Name is empty, Keys lead into the section
// itself ("max_turns" of limits, "rules[0].when" of policy), which is created or removed with its last key.
type Change struct {
	Section, Name string
	Entry         Entry // nil removes the entry
	Add           bool  // report an error if the entry exists
	// Keys, instead of Entry, changes these keys of an existing entry and keeps its other keys. A dot leads into a
	// map ("policy.timeout"), an index to an item of a list ("arguments[0].type"); a nil value removes the key. Only
	// the bytes of the values change. Removals of items come after other changes, the last item first.
	Keys []Field

	node *tree.Node // instead of Entry: a node of another program's file
}

// Edits are changes of a file; see [PlanEdit].
type Edits struct {
	Changes []Change
	User    bool // change the user's own file instead of the project's
	Create  bool // create the file if it does not exist
	// Known, if not nil, remembers how replaced values were written. A value that is changed back is then written as
	// before.
	Known *Spellings
	// Digest, if not empty, is the digest of the file to which the changes apply; see [Plan.Digest].
	Digest string
	// Profile is written into a file that is created. An existing file keeps its own profile: see [Plan].
	Profile string
	// Follow is the path of a file outside the project to which a link may lead, because the person has approved it:
	// see [LinkOf].
	Follow string
	// Texts are whole workflow files of the project, which are written before the file itself.
	Texts []TextEdit
}

// Names reports whether a place of the configuration, such as servers.files or
// servers.files.auth.secret, is in an entry that the edits write.
func (e Edits) Names(place string) bool {
	return slices.ContainsFunc(e.Changes, func(c Change) bool {
		at := c.place()
		return place == at || strings.HasPrefix(place, at+".")
	})
}

// place is the path of the entry, or of the section.
func (c Change) place() string {
	if c.Name == "" {
		return c.Section
	}
	return c.Section + "." + c.Name
}

// Plan is the result that edits will have.
type Plan struct {
	Config        *Config // the new configuration
	File          string  // its name in errors
	Written       string  // the name of the link's target in errors; equal to File if it is no link
	Before, After []byte  // the file's text
	// HasProfile reports whether the new file has the profile of the edits.
	HasProfile bool
	Texts      []PlannedText // the other files that are written

	path string
	real string // path without links
	mode os.FileMode
}

// profileLine matches the line of a tenon.yaml that sets the profile.
var profileLine = lazyregexp.New(`(?m)^profile:[ \t]*["']?([a-z]+)["']?[ \t\r]*(?:#.*)?$`)

// PlanEdit prepares changes without writing them: see [Plan.Write]. They apply to the file that [Load] would read as
// the project's, or to the user's own file. An entry is written into its section, instead of an entry of the same
// name or after the last one, or is removed. All other bytes are kept: comments, order, blank lines. The new file is
// checked, so the configuration of the plan is valid. PlanEdit can also repair a broken file.
//
// Errors: not_found (no file, no such entry), conflict (the name is taken), denied (a link leads out of the project,
// and e.Follow does not name its target), config (the new file would not be valid), invalid (a file that is not
// tenon.yaml, or whose layout has no place for an entry).
func PlanEdit(ctx context.Context, o Options, e Edits) (*Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, err := o.editable(e)
	if err != nil {
		return nil, err
	}
	if l := o.linkAt(path, e); l != nil && l.Real != e.Follow {
		return nil, l.refused()
	}
	p := &Plan{File: o.label(path), path: path, real: withoutLinks(path), mode: 0o644}
	p.Written = p.File
	if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		p.Written = o.label(p.real)
	}
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
		if data, err = readFile(path, tree.MaxBytes); err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "%s: %s", p.File, reason(err))
		}
		p.Before = data
	}
	if e.Digest != "" && e.Digest != p.Digest() {
		return nil, tenon.Errorf(tenon.CodeConflict, "%s was changed meanwhile; load it again, and repeat your changes",
			p.File)
	}
	if e.Profile != "" {
		if p.Before == nil {
			data = fmt.Appendf(data, "profile: %s\n", e.Profile)
		}
		found := profileLine().FindSubmatch(data)
		p.HasProfile = found != nil && string(found[1]) == e.Profile
	}
	for _, c := range e.Changes {
		if data, err = editBytes(p.File, data, c, e.Known); err != nil {
			return nil, err
		}
	}
	p.After = data
	if o, err = p.planTexts(o, e.Texts); err != nil {
		return nil, err
	}
	files, err := o.withLower(ctx,
		[]file{{src: &tree.Source{Label: p.File, Path: path, Dir: filepath.Dir(path), Layer: LayerProject},
			data: data}})
	if err != nil {
		return nil, err
	}
	if p.Config, err = build(ctx, o, files); err != nil {
		return nil, fmt.Errorf("%s is not changed, because it would not be valid:\n%w", p.File, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, &tenon.Error{Code: tenon.CodeCancelled, Message: p.File + " is not changed: " + err.Error(),
			Err: err}
	}
	p.guard(e.Changes)
	return p, p.checkTexts()
}

// guard makes the file private if a changed entry contains a literal token. After that nobody else can read the file,
// so the warning about its mode is removed.
func (p *Plan) guard(changes []Change) {
	if !slices.ContainsFunc(p.Config.Warnings, func(w Error) bool {
		return w.Message == literalToken && slices.ContainsFunc(changes, func(c Change) bool {
			return strings.HasPrefix(w.Path, c.place()+".")
		})
	}) {
		return
	}
	p.mode &^= 0o077
	p.Config.Warnings = slices.DeleteFunc(p.Config.Warnings, func(w Error) bool {
		return strings.HasPrefix(w.Message, wideToken)
	})
}

// Digest returns the digest of the file before the plan.
func (p *Plan) Digest() string {
	sum := sha256.Sum256(p.Before)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// EntryJSON returns an entry from the file before the plan, as JSON with unresolved variables. It returns nil if the
// file has no such entry.
func (p *Plan) EntryJSON(section, name string) json.RawMessage { return p.JSONAt(section, name) }

// JSONAt returns the value at a path of keys as the file has it before the plan, like EntryJSON.
func (p *Plan) JSONAt(keys ...string) json.RawMessage {
	root := tree.Parse(&tree.Source{Label: p.File}, p.Before, &tree.Sink{})
	var path []any
	for _, key := range keys {
		path = append(path, key)
	}
	if n := at(root, path); n != nil {
		return bytes.TrimSpace(n.JSON())
	}
	return nil
}

// EntryNames returns the names of a section's entries in the file before the plan, in order.
func (p *Plan) EntryNames(section string) (names []string) {
	root := tree.Parse(&tree.Source{Label: p.File}, p.Before, &tree.Sink{})
	n := at(root, []any{section})
	if n == nil || n.Kind != tree.Map {
		return nil
	}
	for _, key := range n.Keys {
		names = append(names, key.Val)
	}
	return names
}

// Path returns the absolute path of the file.
func (p *Plan) Path() string { return p.path }

// lockTime is how long Write waits for other edits in the same folder, which take milliseconds.
const lockTime = 10 * time.Second

// Write writes the new file, unless the file has changed since PlanEdit read it.
func (p *Plan) Write(ctx context.Context) error {
	for i := range p.Texts {
		if err := p.Texts[i].write(ctx); err != nil {
			return err
		}
	}
	if len(p.Texts) > 0 && bytes.Equal(p.Before, p.After) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", p.File, err)
	}
	// No other edit may write between the comparison and the rename.
	unlock, err := lockFolder(ctx, p.File, filepath.Dir(p.real))
	if err != nil {
		return err
	}
	defer unlock()
	now, err := readFile(p.path, tree.MaxBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tenon.Errorf(tenon.CodeConfig, "%s: %s", p.File, reason(err))
	}
	if !bytes.Equal(now, p.Before) || withoutLinks(p.path) != p.real {
		return tenon.Errorf(tenon.CodeConflict, "%s was changed by somebody else meanwhile; look at it again", p.File)
	}
	if err := ctx.Err(); err != nil {
		return &tenon.Error{Code: tenon.CodeCancelled, Message: p.File + " is not changed: " + err.Error(), Err: err}
	}
	return replaceFile(p.path, p.After, p.mode)
}

// lockFolder locks the folder of a file that is changed. Without locks of the file system, only a comparison of the
// file's bytes protects it. Error: conflict.
func lockFolder(ctx context.Context, file, dir string) (unlock func(), err error) {
	waits, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	unlock, err = filelock.Folder(waits, dir)
	switch {
	case err == nil:
		return unlock, nil
	case waits.Err() != nil && ctx.Err() == nil:
		return nil, tenon.Errorf(tenon.CodeConflict, "%s is not changed: another tenon has been changing its folder "+
			"for %s", file, lockTime)
	}
	return func() {}, nil
}

// editable returns the path of the file to change.
func (o Options) editable(e Edits) (string, error) {
	path, _ := o.choose()
	switch {
	case e.User:
		if path = o.userFile(); path == "" {
			return "", tenon.Errorf(tenon.CodeNotFound, "there is no home folder to keep your own configuration in; "+
				"set HOME")
		}
	case path == "" && e.Create:
		path = filepath.Join(o.Dir, ownNames[0])
	case path == "":
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no file to change: name one with -c FILE, or write "+
			"one with 'tenon init'")
	case path == "-":
		return "", tenon.Errorf(tenon.CodeInvalid, "stdin cannot be changed; name a file with -c")
	}
	if isForeign(path) {
		return "", tenon.Errorf(tenon.CodeInvalid, "%s is not a tenon.yaml; only that can be changed. 'tenon config "+
			"import %s --write' makes one of it", o.label(path), o.label(path))
	}
	return path, nil
}

// isForeign reports whether a file has another program's format.
func isForeign(path string) bool {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return true
	}
	data, err := readFile(path, tree.MaxBytes)
	if err != nil {
		return false // the error is reported when the file is read
	}
	mistakes := &tree.Sink{}
	root := tree.Parse(&tree.Source{}, data, mistakes)
	if len(mistakes.Errs) > 0 {
		return isAgentText(data) // the mistakes are reported when the file is read
	}
	return recognise(root) != ""
}

// isAgentText reports whether a file that is not YAML looks like a HoloDeck agent: it has lines with keys of an
// agent.
func isAgentText(data []byte) bool {
	keys := 0
	for line := range bytes.Lines(data) {
		switch key, _, _ := bytes.Cut(line, []byte(":")); string(key) {
		case "model", "instructions", "tools", "mcp_servers":
			keys++
		}
	}
	return keys >= 2
}

// replaceFile writes a file atomically: other programs see either the old or the new content.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	if err := wholefile.Write(path, data, mode); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", path, err)
	}
	return nil
}

// editBytes makes one change. It works on lines, so that the rest of the file stays unchanged.
func editBytes(label string, data []byte, change Change, known *Spellings) ([]byte, error) {
	if change.Keys != nil {
		return editKeys(label, data, change, known)
	}
	section, name, entry := change.Section, change.Name, change.node
	if entry == nil && change.Entry != nil {
		entry = Fields(change.Entry).node()
	}
	s := &tree.Sink{}
	root := tree.Parse(&tree.Source{Label: label}, data, s)
	if len(s.Errs) > 0 {
		return nil, Errors(tree.Sorted(s.Errs))
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	body, at := root.Get(section)
	_, key := body.Get(name)
	if change.Add && key != nil {
		return nil, tenon.Errorf(tenon.CodeConflict, "%s has %s.%s already, in line %d", label, section, name, key.Line)
	}
	if entry == nil && key == nil {
		var names []string
		if body != nil {
			for _, k := range body.Keys {
				names = append(names, k.Val)
			}
		}
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no entry %s.%s%s", label, section, name, near(name, names))
	}
	if root != nil && !root.IsNull() && root.Col != 1 || at != nil && at.Col != 1 {
		return nil, oneLine(label, section)
	}
	switch {
	case at == nil: // a new section at the end
		gap := ""
		if len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) != "" {
			gap = "\n"
		}
		return splice(lines, len(lines), len(lines), gap+section+":\n"+block(name, entry, 2)), nil
	case body.IsNull():
		if entry == nil || strings.TrimSpace(strings.SplitN(lines[at.Line-1], "#", 2)[0]) != section+":" {
			return nil, oneLine(label, section)
		}
		return splice(lines, at.Line, at.Line, block(name, entry, 2)), nil
	case body.Kind != tree.Map || len(body.Keys) == 0 || body.Keys[0].Line == at.Line:
		return nil, oneLine(label, section)
	}
	indent := body.Keys[0].Col - 1
	if key == nil {
		last := body.Keys[len(body.Keys)-1]
		end := blockEnd(lines, last.Line, indent)
		return splice(lines, end, end, block(name, entry, indent)), nil
	}
	if strings.TrimSpace(lines[key.Line-1][:key.Col-1]) != "" {
		return nil, oneLine(label, section)
	}
	end, text := blockEnd(lines, key.Line, indent), ""
	if entry != nil {
		text = block(name, entry, indent)
	} else if len(body.Keys) == 1 && !commented(lines[at.Line:key.Line-1]) && !commented(sectionRest(lines[end:])) {
		// The last entry of a section is removed together with the line of the section.
		return splice(lines, sectionGap(lines, at.Line-1, end), end, ""), nil
	}
	return splice(lines, key.Line-1, end, text), nil
}

// sectionGap returns the first line to remove with the section at the lines from up to end. At the end of the file that
// is the empty line before it, which a new section is written with.
func sectionGap(lines []string, from, end int) int {
	last := strings.TrimSpace(strings.Join(lines[end:], "")) == ""
	if last && from > 1 && strings.TrimSpace(lines[from-1]) == "" && strings.TrimSpace(lines[from-2]) != "" {
		return from - 1
	}
	return from
}

func near(name string, names []string) string {
	if n := tenon.Nearest(name, names); n != "" {
		return "; did you mean '" + n + "'?"
	}
	return ""
}

func oneLine(label, section string) error {
	return tenon.Errorf(tenon.CodeInvalid, "%s: '%s' does not have its entries on separate lines, so it cannot "+
		"be changed here; edit the file", label, section)
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

// splice replaces the lines from (counted from 0) up to but not including to by text.
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

// blockEnd returns the number of lines up to the end of the entry that begins on a line. Comments and blank lines
// after the entry are not part of it. List items are, even if they are not indented deeper than the key.
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

// node returns the fields as a tree.
func (f Fields) node() *tree.Node {
	n := &tree.Node{Kind: tree.Map}
	for _, e := range f {
		n.Put(e.Key, valueNode(e.Value))
	}
	return n
}

func valueNode(v any) *tree.Node {
	switch v := v.(type) {
	case string:
		return tree.Text(v)
	case []string:
		n := &tree.Node{Kind: tree.List}
		for _, s := range v {
			n.Vals = append(n.Vals, tree.Text(s))
		}
		return n
	case Fields:
		return v.node()
	case json.RawMessage:
		if n := tree.Parse(&tree.Source{Label: "JSON"}, v, &tree.Sink{}); n != nil {
			return n
		}
		return &tree.Node{Tag: "!!null", Val: "null"}
	case []json.RawMessage:
		n := &tree.Node{Kind: tree.List}
		for _, one := range v {
			n.Vals = append(n.Vals, valueNode(one))
		}
		return n
	case []Fields:
		n := &tree.Node{Kind: tree.List}
		for _, f := range v {
			n.Vals = append(n.Vals, f.node())
		}
		return n
	}
	if b, ok := v.(bool); ok {
		return &tree.Node{Tag: "!!bool", Val: strconv.FormatBool(b)}
	}
	return &tree.Node{Tag: "!!int", Val: fmt.Sprint(v)} // a number
}
