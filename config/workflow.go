package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// ParseWorkflow reads a workflow file, called name in errors. Errors: [Errors].
func ParseWorkflow(name string, data []byte) (*workflow.Workflow, error) {
	w, _, err := parseWorkflow(name, data)
	return w, err
}

func parseWorkflow(name string, data []byte) (*workflow.Workflow, *Document, error) {
	var f workflow.File
	doc, err := ParseDocument(name, data, ".", &f)
	if err != nil && (doc.empty || slices.ContainsFunc(doc.d.errs, func(e Error) bool { return unnamed.MatchString(e.Path) })) {
		return nil, nil, err
	}
	w, err := workflow.Compile(f, &beside{doc, slices.Clone(doc.d.errs)})
	if err == nil {
		err = doc.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	return w, doc, nil
}

// unnamed are the places where a value that cannot be read leaves steps and tables without
// their names: whatever refers to those would look wrong.
var unnamed = regexp.MustCompile(`^(parameters|inputs|steps)?(\[\d+\](\.(id|name))?)?$`)

// beside tells what is wrong in a workflow beside what was wrong before, when its file was
// read, and not what follows from that.
type beside struct {
	*Document
	before []Error
}

// Add implements [workflow.Reporter].
func (b *beside) Add(path, message, hint string) {
	dir, key := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		dir, key = path[:i+1], path[i+1:]
	}
	for _, e := range b.before {
		wrote, sibling := strings.CutPrefix(e.Path, dir)
		switch {
		case isWithin(e.Path, path), isWithin(path, e.Path):
			return
		case sibling && !strings.Contains(wrote, ".") && strings.Contains(e.Hint, "'"+key+"'"): // the key was written in another way
			return
		}
	}
	b.Document.Add(path, message, hint)
}

// isWithin reports whether a path is another one or leads into what stands there.
func isWithin(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// readWorkflowFile is a workflow with what it was read from.
type readWorkflowFile struct {
	w    *workflow.Workflow
	pack *workflow.Pack
	doc  *Document
}

// ReadWorkflow reads a workflow with all that belongs to it: from a folder, its file,
// or a pack. Errors: not_found, invalid, too_large, [Errors].
func ReadWorkflow(path string) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := readWorkflow(path)
	return r.w, r.pack, err
}

func readWorkflow(name string) (r readWorkflowFile, err error) {
	st, err := os.Stat(name)
	if err != nil {
		return r, unreadable(name, err)
	}
	file := name
	if st.IsDir() {
		file = filepath.Join(name, workflow.FileName)
	}
	data, err := readFile(file, workflow.MaxPack)
	if err != nil {
		return r, unreadable(file, err)
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) || strings.EqualFold(filepath.Ext(file), ".zip") {
		return unpackWorkflow(name, data)
	}
	if r.w, r.doc, err = parseWorkflow(file, data); err != nil {
		return readWorkflowFile{}, err
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return readWorkflowFile{}, unreadable(file, err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	if err := r.filesAreThere(root.FS()); err != nil {
		return readWorkflowFile{}, err
	}
	r.pack, err = workflow.Collect(root.FS(), filepath.Base(file), r.w)
	return r, err
}

// filesAreThere looks for what the workflow names beside its file, each mistake with
// its place.
func (r *readWorkflowFile) filesAreThere(dir fs.FS) error {
	look := func(at, name, what string) {
		if name == "" {
			return
		}
		if _, err := fs.Stat(dir, path.Clean(name)); errors.Is(err, fs.ErrNotExist) {
			r.doc.Add(at, "there is no "+what+" '"+tenon.Visible(name)+"'", "names are relative to the folder of the workflow's file")
		}
	}
	for i, s := range r.w.Steps {
		if at := "steps[" + strconv.Itoa(i) + "].table."; s.Table != nil {
			look(at+"csv", s.Table.CSV, "file")
			look(at+"arrow", s.Table.Arrow, "file")
		}
	}
	look("data", r.w.Data, "folder")
	return r.doc.Err()
}

// UnpackWorkflow reads the bytes of a pack, called name in errors.
func UnpackWorkflow(name string, data []byte) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := unpackWorkflow(name, data)
	return r.w, r.pack, err
}

func unpackWorkflow(name string, data []byte) (r readWorkflowFile, err error) {
	if r.pack, err = workflow.ReadPack(name, data); err != nil {
		return r, err
	}
	r.w, r.doc, err = parseWorkflow(name+":"+workflow.FileName, r.pack.File(workflow.FileName))
	return r, err
}

func unreadable(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return tenon.Errorf(tenon.CodeNotFound, "the workflow %s cannot be read: %w", path, err)
}

// Keys returns the keys of the map at a path in their order in the file.
func (d *Document) Keys(path string) []string { return d.d.order[path] }
