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
)

// The bounds of a pack.
const (
	MaxPack      = 64 << 20  // bytes of the zip
	maxUnpacked  = 256 << 20 // bytes of all files
	maxPackFiles = 10_000
)

// Pack is a workflow with all that it needs: FileName, the files that its tables come
// from, and its data. Results are no part of it.
type Pack struct{ files map[string][]byte }

// Collect gathers a workflow from its folder. File is the name of the workflow file in
// it. What leads out of the folder is refused, and so are links. Errors: not_found,
// invalid, too_large.
func Collect(dir fs.FS, file string, w *Workflow) (*Pack, error) {
	p := &Pack{files: map[string][]byte{}}
	total := 0
	add := func(as, name string) error {
		if strings.EqualFold(as, FileName) && path.Clean(name) == path.Clean(file) {
			as = FileName // it may lie in the data, under a name of other letters
		} else if strings.EqualFold(as, FileName) {
			return tenon.Errorf(tenon.CodeInvalid, "%s goes with the workflow %s, which has its name in a pack; put what goes with it into a folder of its own", name, file)
		}
		b, err := readFile(dir, name, maxUnpacked-total)
		if err != nil {
			return err
		}
		total += len(b)
		p.files[as] = b
		if len(p.files) > maxPackFiles {
			return tenon.Errorf(tenon.CodeTooLarge, "the workflow has more than %d files", maxPackFiles)
		}
		return nil
	}
	if err := add(FileName, file); err != nil {
		return nil, err
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
			return tenon.Errorf(tenon.CodeNotFound, "the workflow's data folder '%s' is not there", w.Data)
		case err != nil:
			return tenon.Errorf(tenon.CodeInvalid, "%s cannot be read: %w", name, err)
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return tenon.Errorf(tenon.CodeInvalid, "%s is no plain file; a workflow goes with files alone, without links", name)
		}
		return add(name, name)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// tableFiles are the files of the steps' tables.
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
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is no plain file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s cannot be read: %w", name, err)
	case len(b) > most:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: a workflow with its files has at most %d MiB", name, maxUnpacked>>20)
	}
	return b, nil
}

// Zip writes the pack. The same files give the same bytes.
func (p *Pack) Zip() ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range p.Names() {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = w.Write(p.files[name])
		}
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "the workflow cannot be packed: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the workflow cannot be packed: %w", err)
	}
	if b.Len() > MaxPack {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the packed workflow has %d MiB; at most %d MiB are possible: keep large data outside and read it with a tool", b.Len()>>20, MaxPack>>20)
	}
	return b.Bytes(), nil
}

// ReadPack reads a packed workflow. Nothing that stands in it is believed: neither its
// sizes nor its names. Name is what errors call it. Errors: invalid, too_large.
func ReadPack(name string, data []byte) (*Pack, error) {
	bad := func(format string, args ...any) (*Pack, error) {
		return nil, tenon.Errorf(tenon.CodeInvalid, name+": "+format, args...)
	}
	if len(data) > MaxPack {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: a packed workflow has at most %d MiB", name, MaxPack>>20)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return bad("this is no packed workflow: %w", err)
	}
	if len(z.File) > maxPackFiles {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d files", name, maxPackFiles)
	}
	p := &Pack{files: map[string][]byte{}}
	left := maxUnpacked
	for _, f := range z.File {
		shown := tenon.Visible(f.Name)
		switch {
		case strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 && localPath(f.Name):
			continue
		case !localPath(f.Name) || f.Name != path.Clean(f.Name) || f.Name == ".":
			return bad("the file '%s' has a name that leads out of the pack", shown)
		case !f.Mode().IsRegular():
			return bad("'%s' is no plain file; links are not unpacked", shown)
		case p.files[f.Name] != nil:
			return bad("the file '%s' is there twice", shown)
		case f.Name != FileName && strings.EqualFold(f.Name, FileName): // which of them is the workflow must not hang on the disk
			return bad("'%s' and %s are one file where case does not count", shown, FileName)
		}
		r, err := f.Open()
		if err != nil {
			return bad("'%s' cannot be unpacked: %w", shown, err)
		}
		b, err := io.ReadAll(io.LimitReader(r, int64(left)+1))
		if err = errors.Join(err, r.Close()); err != nil && len(b) <= left {
			return bad("'%s' cannot be unpacked: %w", shown, err)
		}
		if left -= len(b); left < 0 {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: what is packed comes to more than %d MiB", name, maxUnpacked>>20)
		}
		if b == nil {
			b = []byte{}
		}
		p.files[f.Name] = b
	}
	for f := range p.files {
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if p.files[dir] != nil {
				return bad("'%s' is a file and a folder", tenon.Visible(dir))
			}
		}
	}
	if p.files[FileName] == nil {
		return bad("this zip has no %s, so it is no workflow of tenon", FileName)
	}
	return p, nil
}

// Names are the files of the pack, sorted.
func (p *Pack) Names() []string { return slices.Sorted(maps.Keys(p.files)) }

// File returns a file of the pack, nil where there is none. The caller must not
// change it.
func (p *Pack) File(name string) []byte { return p.files[path.Clean(name)] }
