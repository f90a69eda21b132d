package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/workflow"
)

// Draft is a workflow text that a person is editing. Nothing of it is stored.
type Draft struct {
	Text  string          // with the changes
	Value []byte          // the text as a JSON object; nil if it is not a map in YAML
	Graph *workflow.Graph // of everything that could be read; nil if that was nothing
	doc   *Document
}

// DraftChange changes one value of a workflow text.
type DraftChange struct {
	Path  []any  // keys (string) and positions in lists (int)
	Value []byte // JSON; nil removes the value
}

// maxDraftFiles is the maximum size of the tables whose columns [NewDraft] reads. Queries over larger ones are not
// checked before the workflow is saved.
const maxDraftFiles = 4 << 20

// maxDraftChanges and maxDraftDepth bound what one draft changes, because each element of a path reads the text again.
// A form sends one change at a time.
const (
	maxDraftChanges = 64
	maxDraftDepth   = 32
)

// NewDraft changes values of a workflow text and checks the result. name is the file's name in mistakes, and dir the
// folder of its tables. Only the bytes of changed values differ in the new text. Errors: invalid (a change cannot be
// made). Mistakes in the text are not errors: see [Draft.Mistakes].
func NewDraft(name, dir, text string, changes []DraftChange) (*Draft, error) {
	if len(changes) > maxDraftChanges {
		return nil, tenon.Errorf(tenon.CodeInvalid, "a draft has at most %d changes, this one has %d", maxDraftChanges,
			len(changes))
	}
	s := &splicer{label: name, data: []byte(text)}
	for _, c := range changes {
		if len(c.Path) > maxDraftDepth {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the path of a change has at most %d elements, this one has %d",
				maxDraftDepth, len(c.Path))
		}
		if err := s.draft(c); err != nil {
			return nil, err
		}
	}
	d := &Draft{Text: string(s.data)}
	var f workflow.File
	doc, err := parseDocument(&tree.Source{Label: name, Dir: dir, Values: MaxPackValues}, s.data, &f)
	d.doc = doc
	if doc.empty || doc.root.Kind != tree.Map {
		if err == nil {
			doc.Add("", "the workflow is empty", "begin with: kind: workflow")
		}
		return d, nil
	}
	d.Value = bytes.TrimSpace(doc.root.JSON())
	if err != nil && slices.ContainsFunc(doc.d.Errs, func(e Error) bool { return unnamed().MatchString(e.Path) }) {
		return d, nil
	}
	w, g, err := workflow.Sketch(f, &beside{doc, slices.Clone(doc.d.Errs)})
	if err != nil {
		return nil, err
	}
	d.Graph = &g
	if w == nil || doc.Err() != nil {
		return d, nil
	}
	return d, d.checkTables(w, filepath.Join(dir, filepath.Base(name)), s.data)
}

// checkTables checks the queries of a draft against the columns of its tables.
func (d *Draft) checkTables(w *workflow.Workflow, file string, data []byte) error {
	light := *w
	light.Data = "" // its files say nothing about the workflow
	r := readWorkflowFile{w: &light, doc: d.doc}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil // a new folder: there are no tables yet
	}
	defer root.Close() //nolint:errcheck // it was only read
	if r.filesAreThere(root.FS()) != nil {
		return nil // reported in the document
	}
	size := int64(0)
	for _, s := range w.Steps {
		if s.Table == nil {
			continue
		}
		for _, name := range []string{s.Table.CSV, s.Table.Arrow} {
			if st, err := root.Stat(filepath.FromSlash(name)); name != "" && err == nil {
				size += st.Size()
			}
		}
	}
	if size > maxDraftFiles {
		return nil
	}
	if r.pack, err = workflow.CollectText(root.FS(), filepath.Base(file), data, &light); err != nil {
		d.doc.Add("", err.Error(), "")
		return nil
	}
	return r.checkQueries()
}

// Add adds a mistake at the value with this path, such as steps[0].tool.
func (d *Draft) Add(path, message, hint string) { d.doc.Add(path, message, hint) }

// Mistakes returns the mistakes of the text, in their order in the text.
func (d *Draft) Mistakes() []Error { return tree.Sorted(d.doc.d.Errs) }

// draft makes one change. A list or map that is missing is made.
func (s *splicer) draft(c DraftChange) error {
	if len(c.Path) == 0 {
		return tenon.Errorf(tenon.CodeInvalid, "the path of a change is empty")
	}
	var value *tree.Node
	if c.Value != nil {
		value = valueNode(json.RawMessage(c.Value))
	}
	path := c.Path
	for value != nil && len(path) > 1 {
		outer := at(s.tree(), path[:len(path)-1])
		if outer != nil && outer.Kind == tree.Scalar && !outer.IsNull() {
			return tenon.Errorf(tenon.CodeInvalid, "%s: %s has a value and no keys", s.label,
				dotted(path[:len(path)-1]))
		}
		if outer != nil && len(outer.Vals) > 0 {
			if i, ok := path[len(path)-1].(int); ok && i > len(outer.Vals) {
				return tenon.Errorf(tenon.CodeInvalid, "%s: %s has no item %d", s.label,
					dotted(path[:len(path)-1]), i-1)
			}
			break
		}
		// The collection is missing or empty: it is written with its first value.
		switch step := path[len(path)-1].(type) {
		case int:
			if step != 0 {
				return tenon.Errorf(tenon.CodeInvalid, "%s: %s has no item %d", s.label,
					dotted(path[:len(path)-1]), step-1)
			}
			value = &tree.Node{Kind: tree.List, Vals: []*tree.Node{value}}
		case string:
			outer := &tree.Node{Kind: tree.Map}
			outer.Put(step, value)
			value = outer
		}
		path = path[:len(path)-1]
	}
	for value == nil && len(path) > 1 { // a map or list whose last value is removed is removed, too
		outer := at(s.tree(), path[:len(path)-1])
		if outer == nil || len(outer.Vals) != 1 || at(outer, path[len(path)-1:]) == nil {
			break
		}
		path = path[:len(path)-1]
	}
	return s.set(path, value)
}
