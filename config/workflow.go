package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// ParseWorkflow reads a workflow file, called name in errors. Errors: [Errors].
func ParseWorkflow(name string, data []byte) (*workflow.Workflow, error) {
	var f workflow.File
	doc, err := ParseDocument(name, data, ".", &f)
	if err != nil {
		return nil, err
	}
	w, err := workflow.Compile(f, doc)
	if err == nil {
		err = doc.Err()
	}
	return w, err
}

// ReadWorkflow reads a workflow with all that belongs to it: from a folder, its file,
// or a pack. Errors: not_found, invalid, too_large, [Errors].
func ReadWorkflow(path string) (*workflow.Workflow, *workflow.Pack, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	file := path
	if st.IsDir() {
		file = filepath.Join(path, workflow.FileName)
	}
	data, err := readFile(file, workflow.MaxPack)
	if err != nil {
		return nil, nil, unreadable(file, err)
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) || strings.EqualFold(filepath.Ext(file), ".zip") {
		return UnpackWorkflow(path, data)
	}
	w, err := ParseWorkflow(file, data)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, nil, unreadable(file, err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	p, err := workflow.Collect(root.FS(), filepath.Base(file), w)
	return w, p, err
}

// UnpackWorkflow reads the bytes of a pack, called name in errors.
func UnpackWorkflow(name string, data []byte) (*workflow.Workflow, *workflow.Pack, error) {
	p, err := workflow.ReadPack(name, data)
	if err != nil {
		return nil, nil, err
	}
	w, err := ParseWorkflow(name+":"+workflow.FileName, p.File(workflow.FileName))
	return w, p, err
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
