package workflow

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/safezip"
)

// Limits of a pack.
const (
	MaxPack      = 64 << 20  // bytes of the zip
	maxUnpacked  = 256 << 20 // bytes of all files
	maxDirectory = 4 << 20   // bytes of the zip's directory
	maxPackFiles = 10_000
	maxFlowFile  = 4 << 20 // bytes of the workflow file in a zip
)

// Pack is a workflow with all its files: FileName, the files of its tables, and its data. It does not contain
// results. A pack that was read from a zip decompresses its files on demand. It may be used concurrently.
type Pack struct {
	files   map[string]packedFile
	folders []string // the empty folders of the data, sorted
}

// packedFile is a file in memory, or a file of a zip.
type packedFile struct {
	data []byte
	zip  *safezip.File // if nil, data contains the content
}

func (f packedFile) open() io.ReadCloser {
	if f.zip != nil {
		return f.zip.Open()
	}
	return io.NopCloser(bytes.NewReader(f.data))
}

func (f packedFile) copyTo(w io.Writer) error {
	in := f.open()
	_, err := io.Copy(w, in)
	return errors.Join(err, in.Close())
}

// Collect packs a workflow from its folder dir. file is the name of the workflow file in dir. It refuses links and
// files outside of the folder. Errors: not_found, invalid, too_large.
func Collect(dir fs.FS, file string, w *Workflow) (*Pack, error) {
	text, err := readFile(dir, file, maxUnpacked)
	if err != nil {
		return nil, err
	}
	return CollectText(dir, file, text, w)
}

// CollectText is Collect for a workflow file whose content is text, whether or not the folder has the file.
func CollectText(dir fs.FS, file string, text []byte, w *Workflow) (*Pack, error) {
	p := &Pack{files: map[string]packedFile{}}
	total := len(text)
	p.files[FileName] = packedFile{data: text}
	add := func(as, name string) error {
		if strings.EqualFold(as, FileName) && path.Clean(name) == path.Clean(file) {
			return nil // the file may be in the data folder, under a name in another case
		} else if strings.EqualFold(as, FileName) {
			return tenon.Errorf(tenon.CodeInvalid,
				"%s: the name is reserved for the workflow file %s in a pack; move it into a subfolder", name, file)
		}
		b, err := readFile(dir, name, maxUnpacked-total)
		if err != nil {
			return err
		}
		total += len(b)
		p.files[as] = packedFile{data: b}
		if len(p.files) > maxPackFiles {
			return tenon.Errorf(tenon.CodeTooLarge, "the workflow has more than %d files", maxPackFiles)
		}
		return nil
	}
	for _, name := range w.tableFiles() {
		if err := add(name, name); err != nil {
			return nil, err
		}
	}
	if w.Data == "" {
		return p, nil
	}
	top := path.Clean(w.Data)
	err := fs.WalkDir(dir, top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == top:
			return tenon.Errorf(tenon.CodeNotFound, "the workflow's data folder '%s' does not exist", w.Data)
		case err != nil:
			return tenon.Errorf(tenon.CodeInvalid, "%s cannot be read: %w", name, err)
		case d.IsDir():
			return p.addFolder(dir, name)
		case !d.Type().IsRegular():
			return tenon.Errorf(tenon.CodeInvalid,
				"%s is not a regular file; a workflow must not contain links", name)
		}
		return add(name, name)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// addFolder records a folder if it is empty. The files of any other folder name it.
func (p *Pack) addFolder(dir fs.FS, name string) error {
	list, err := fs.ReadDir(dir, name)
	if err == nil && len(list) == 0 {
		if p.folders = append(p.folders, name); len(p.folders)+len(p.files) > maxPackFiles {
			return tenon.Errorf(tenon.CodeTooLarge, "the workflow has more than %d files and empty folders",
				maxPackFiles)
		}
	}
	return err
}

// tableFiles returns the files of the table steps.
func (w *Workflow) tableFiles() []string {
	var names []string
	for _, s := range w.steps {
		if s.Table != nil {
			names = append(names, s.Table.CSV, s.Table.Arrow)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
	for i := range names {
		names[i] = path.Clean(names[i])
	}
	return names
}

func readFile(dir fs.FS, name string, most int) ([]byte, error) {
	name = path.Clean(name)
	f, err := dir.Open(name)
	if err != nil {
		code := tenon.CodeInvalid
		if errors.Is(err, fs.ErrNotExist) {
			code = tenon.CodeNotFound
		}
		return nil, tenon.Errorf(code, "%s cannot be read: %w", name, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s cannot be read: %w", name, err)
	case len(b) > most:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: the workflow and its files exceed %d MiB", name,
			maxUnpacked>>20)
	}
	return b, nil
}

// Zip returns the pack as a zip file. The same files result in the same bytes.
func (p *Pack) Zip() ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range p.Names() {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			err = p.files[name].copyTo(w)
		}
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "the workflow cannot be packed: %w", err)
		}
	}
	for _, name := range p.folders {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: name + "/"}); err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "the workflow cannot be packed: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the workflow cannot be packed: %w", err)
	}
	if b.Len() > MaxPack {
		return nil, tenon.Errorf(tenon.CodeTooLarge,
			"the packed workflow has %d MiB, the limit is %d MiB; keep large data outside and read it with a tool",
			b.Len()>>20, MaxPack>>20)
	}
	return b.Bytes(), nil
}

// OpenPack reads a packed workflow of size bytes. It checks all names, sizes and checksums, and keeps only the
// directory in memory. The bytes of r must not change while the pack is in use. name is the pack's name in errors.
// Errors: invalid, too_large, store.
func OpenPack(name string, r io.ReaderAt, size int64) (*Pack, error) {
	if size > MaxPack {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: the packed workflow exceeds %d MiB", name, MaxPack>>20)
	}
	a, err := safezip.Open(name, r, size, safezip.Limits{Files: maxPackFiles, Directory: maxDirectory,
		Unpacked: maxUnpacked})
	if errors.Is(err, safezip.ErrFormat) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s: this is not a packed workflow: %w; make one with tenon "+
			"workflows pack", name, safezip.ErrFormat)
	}
	if err != nil {
		return nil, err
	}
	flow, ok := a.File(FileName)
	switch {
	case !ok:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s: this zip contains no %s, so it is not a tenon workflow",
			name, FileName)
	case flow.Unpacked > maxFlowFile:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: %s has more than %d MiB; move data into separate files",
			name, FileName, maxFlowFile>>20)
	}
	files := a.Files()
	p := &Pack{files: make(map[string]packedFile, len(files))}
	for i := range files {
		f := &files[i]
		if !localPath(f.Name) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "%s: the file '%s' has a name outside the pack", name,
				tenon.Visible(f.Name))
		}
		if err := f.CopyTo(io.Discard); err != nil { // later reads of unchanged bytes have the same content
			return nil, err
		}
		p.files[f.Name] = packedFile{zip: f}
	}
	if err := p.keepFolders(name, a.Folders()); err != nil {
		return nil, err
	}
	return p, nil
}

// keepFolders keeps the empty ones of the folders that a zip has entries for. Other programs write an entry for every
// folder.
func (p *Pack) keepFolders(pack string, folders []string) error {
	full := map[string]bool{}
	for _, list := range [][]string{p.Names(), folders} {
		for _, name := range list {
			for d := path.Dir(name); d != "." && !full[d]; d = path.Dir(d) {
				full[d] = true
			}
		}
	}
	for _, folder := range folders {
		if !localPath(folder) {
			return tenon.Errorf(tenon.CodeInvalid, "%s: the folder '%s' has a name outside the pack", pack,
				tenon.Visible(folder))
		}
		if !full[folder] {
			p.folders = append(p.folders, folder)
		}
	}
	slices.Sort(p.folders)
	return nil
}

// Names returns the sorted names of the files.
func (p *Pack) Names() []string { return slices.Sorted(maps.Keys(p.files)) }

// Zipped reports whether the pack was read from a zip.
func (p *Pack) Zipped() bool { return p.files[FileName].zip != nil }

// Open returns a file of the pack as a stream, and its size. Errors: not_found; reading: invalid, store.
func (p *Pack) Open(name string) (io.ReadCloser, int64, error) {
	f, ok := p.files[path.Clean(name)]
	switch {
	case !ok:
		return nil, 0, tenon.Errorf(tenon.CodeNotFound, "the pack has no file '%s'", tenon.Visible(name))
	case f.zip != nil:
		return f.open(), f.zip.Unpacked, nil
	}
	return f.open(), int64(len(f.data)), nil
}

// File returns the content of a file of the pack. The caller must not modify it. Errors: not_found, invalid,
// store.
func (p *Pack) File(name string) ([]byte, error) {
	f, ok := p.files[path.Clean(name)]
	switch {
	case !ok:
		return nil, tenon.Errorf(tenon.CodeNotFound, "the pack has no file '%s'", tenon.Visible(name))
	case f.zip != nil:
		return f.zip.Bytes()
	}
	return f.data, nil
}
