package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	if err != nil {
		return nil, nil, err
	}
	w, err := workflow.Compile(f, doc)
	if err == nil {
		err = doc.Err()
	}
	return w, doc, err
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
