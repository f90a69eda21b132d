package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/workflow"
)

func parseWorkflow(name string, data []byte, values int) (*workflow.Workflow, *Document, error) {
	var f workflow.File
	doc, err := parseDocument(&tree.Source{Label: name, Dir: ".", Values: values}, data, &f)
	if err != nil && (doc.empty || slices.ContainsFunc(doc.d.Errs,
		func(e Error) bool { return unnamed().MatchString(e.Path) })) {
		return nil, nil, err
	}
	w, err := workflow.Compile(f, &beside{doc, slices.Clone(doc.d.Errs)})
	if err == nil {
		err = doc.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	return w, doc, nil
}

// unnamed matches the paths of values whose mistakes leave steps and tables without names, so that references to them
// would look wrong.
var unnamed = lazyregexp.New(`^(parameters|inputs|steps)?(\[\d+\](\.(id|name))?)?$`)

// beside reports mistakes in a workflow. It leaves out mistakes that were found when the file was read, and mistakes
// that follow from them.
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
		// the key was misspelled
		case sibling && !strings.Contains(wrote, ".") && strings.Contains(e.Hint, "'"+key+"'"):
			return
		}
	}
	b.Document.Add(path, message, hint)
}

// isWithin reports whether a path is other or a path below it.
func isWithin(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// readWorkflowFile is a workflow with the files from which it was read.
type readWorkflowFile struct {
	w    *workflow.Workflow
	pack *workflow.Pack
	doc  *Document
	sums map[string]fileSum // digests of the files, by absolute path
}

// ReadWorkflow reads a workflow with its files. The path is a folder, a workflow file or a pack. Errors: not_found,
// invalid, too_large, [Errors].
func ReadWorkflow(path string) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := readWorkflow(path, nil)
	return r.w, r.pack, err
}

// ReadWorkflow returns a workflow that the configuration names, in the version with which the configuration was
// checked. It returns the errors of the function [ReadWorkflow].
func (c *Config) ReadWorkflow(path string) (*workflow.Workflow, *workflow.Pack, error) {
	if r, ok := c.flowed[path]; ok {
		return r.w, r.pack, nil
	}
	return ReadWorkflow(path)
}

// readWorkflow is ReadWorkflow with planned texts of files, by path, which are used instead of the files.
func readWorkflow(name string, planned map[string][]byte) (r readWorkflowFile, err error) {
	for _, file := range []string{name, filepath.Join(name, workflow.FileName)} {
		if data, ok := planned[file]; ok {
			return readWorkflowText(file, data)
		}
	}
	st, err := os.Stat(name)
	if err != nil {
		return r, unreadable(name, err)
	}
	file := name
	if st.IsDir() {
		file = filepath.Join(name, workflow.FileName)
	}
	in, err := openFile(file, workflow.MaxPack)
	if err != nil {
		return r, unreadable(file, err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	head := make([]byte, len(zipMagic))
	n, err := in.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return r, unreadable(file, err)
	}
	if string(head[:n]) == zipMagic || strings.EqualFold(filepath.Ext(file), ".zip") {
		return readZipWorkflow(name, file, in)
	}
	data, err := io.ReadAll(io.LimitReader(in, workflow.MaxPack+1))
	if err == nil && len(data) > workflow.MaxPack {
		err = tooManyBytes(file, workflow.MaxPack)
	}
	if err != nil {
		return r, unreadable(file, err)
	}
	return readWorkflowText(file, data)
}

// readWorkflowText reads a workflow whose file has the content data, with the other files of its folder.
func readWorkflowText(file string, data []byte) (r readWorkflowFile, err error) {
	if r.w, r.doc, err = parseWorkflow(file, data, 0); err != nil {
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
	if r.pack, err = workflow.CollectText(root.FS(), filepath.Base(file), data, r.w); err != nil {
		return r, err
	}
	r.sums = map[string]fileSum{file: sumOf(data)}
	for _, name := range r.pack.Names() {
		if name == workflow.FileName {
			continue
		}
		b, err := r.pack.File(name)
		if err != nil {
			return readWorkflowFile{}, err
		}
		r.sums[filepath.Join(filepath.Dir(file), filepath.FromSlash(name))] = sumOf(b)
	}
	return r, nil
}

// filesAreThere reports files that the workflow names and that do not exist, with the places where it names them.
func (r *readWorkflowFile) filesAreThere(dir fs.FS) error {
	look := func(at, name, what string) {
		if name == "" {
			return
		}
		if _, err := fs.Stat(dir, path.Clean(name)); errors.Is(err, fs.ErrNotExist) {
			r.doc.Add(at, "there is no "+what+" '"+tenon.Visible(name)+"'",
				"names are relative to the folder of the workflow's file")
		}
	}
	for i, s := range r.w.Steps {
		if s.Table != nil {
			at := "steps[" + strconv.Itoa(i) + "].table."
			look(at+"csv", s.Table.CSV, "file")
			look(at+"arrow", s.Table.Arrow, "file")
		}
	}
	look("data", r.w.Data, "folder")
	return r.doc.Err()
}

// zipMagic is the beginning of every zip archive that contains files.
const zipMagic = "PK\x03\x04"

// readZipWorkflow reads a packed workflow from an open file. It first makes a private copy, from which the digest,
// the checks and all later reads come.
func readZipWorkflow(name, file string, in io.Reader) (r readWorkflowFile, err error) {
	sum := sha256.New()
	copied, err := safezip.NewSpool(name, workflow.MaxPack, safezip.From(io.TeeReader(in, sum)))
	if tenon.ErrorCode(err) == tenon.CodeTooLarge {
		return r, tenon.Errorf(tenon.CodeTooLarge, "the packed workflow %w", err)
	}
	if err != nil {
		return r, unreadable(file, err)
	}
	if r, err = openWorkflow(name, copied, copied.Size(), MaxPackValues); err != nil {
		_ = copied.Close() // the first error matters more
		return r, err
	}
	r.sums = map[string]fileSum{file: {digest: hex.EncodeToString(sum.Sum(nil)), size: copied.Size()}}
	return r, nil
}

// UnpackWorkflow reads the bytes of a pack from a trusted source, such as the host's store. name is the pack's name
// in errors. The caller must not modify the data afterwards.
func UnpackWorkflow(name string, data []byte) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := openWorkflow(name, bytes.NewReader(data), int64(len(data)), 0)
	return r.w, r.pack, err
}

// OpenWorkflow reads the workflow in an untrusted pack of size bytes, which it opens like [workflow.OpenPack]. The
// workflow has at most [MaxPackValues] values. Errors: invalid, too_large, store, [Errors].
func OpenWorkflow(name string, in io.ReaderAt, size int64) (*workflow.Workflow, *workflow.Pack, error) {
	r, err := openWorkflow(name, in, size, MaxPackValues)
	return r.w, r.pack, err
}

// MaxPackValues is the maximum number of values in a workflow of an untrusted pack. A parsed YAML value takes several
// hundred times the memory of its text.
const MaxPackValues = 30_000

// yamlMarks are characters of YAML. Each value but the first follows one of them, so their number bounds the number of
// values before the text is parsed.
const yamlMarks = ",:-?[{"

func openWorkflow(name string, in io.ReaderAt, size int64, values int) (r readWorkflowFile, err error) {
	if r.pack, err = workflow.OpenPack(name, in, size); err != nil {
		return r, err
	}
	data, err := r.pack.File(workflow.FileName)
	if err != nil {
		return r, err
	}
	name += ":" + workflow.FileName
	marks := 0
	for _, c := range data {
		if strings.IndexByte(yamlMarks, c) >= 0 {
			marks++
		}
	}
	if values > 0 && marks > values { // checked before parsing, which needs the memory
		return r, tenon.Errorf(tenon.CodeTooLarge, "%s may have more than %d values; move rows into a CSV file of "+
			"the pack", name, values)
	}
	r.w, r.doc, err = parseWorkflow(name, data, values)
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
