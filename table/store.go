package table

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// What a file store may hold.
const (
	maxFile   = 256 << 20 // bytes of one file of a store
	maxFiles  = 1 << 16   // files of a store
	maxBundle = 4 << 30   // bytes of all of a bundle
	sumsName  = "SHA256SUMS"
)

// Store is the file store of a table: the packed workflows that its tools name, and
// their data. It lies in a folder beside the table, or with it in a bundle. A file
// that is missing or changed is an error when it is read, not before.
type Store struct {
	name  string
	files fs.FS // nil: there is none
	sums  map[string]string
	err   error    // why the sums cannot be read
	root  *os.Root // the folder; nil: there is none
}

// dirStore is the store beside a table.
func dirStore(table string) *Store {
	dir := table + ".filestore"
	root, err := os.OpenRoot(dir) // nothing that a name or a link says leads out of it
	if err != nil {
		return &Store{name: dir}
	}
	s := newStore(dir, root.FS())
	s.root = root
	return s
}

// close lets go of the folder.
func (s *Store) close() error {
	if s == nil || s.root == nil {
		return nil
	}
	return s.root.Close()
}

func newStore(name string, files fs.FS) *Store {
	s := &Store{name: name, files: files}
	s.sums, s.err = readSums(files)
	return s
}

// readSums reads SHA256SUMS; a store without it has no sums.
func readSums(files fs.FS) (map[string]string, error) {
	b, err := readFile(files, sumsName, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		sum, name, _ := strings.Cut(s.Text(), " ")
		if len(sum) != 64 || name == "" || name[0] != ' ' && name[0] != '*' { // what sha256sum writes of texts and of binary files
			return nil, fmt.Errorf("%s: '%s' is no line of a checksum file", sumsName, tenon.Visible(s.Text()))
		}
		sums[name[1:]] = strings.ToLower(sum)
	}
	return sums, s.Err()
}

// readFile reads a file of at most limit bytes. What is no file is not opened: a pipe that
// nobody writes to would be waited for.
func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	st, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, errors.New("it is a folder, not a file")
	case !st.Mode().IsRegular():
		return nil, errors.New("it is no plain file")
	case st.Size() > limit: // said before anything is unpacked
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, err
}

// keyNames splits file store keys into the names of files. Each key is
// v1:STORE:INDEX:NAME:ITERATION…, the older form of that with underscores, or a name.
func keyNames(keys string) ([]string, error) {
	var names []string
	for _, key := range strings.Split(keys, ";") {
		key = strings.TrimSpace(key)
		if key == "" {
			continue
		}
		name := key
		if parts := strings.Split(key, ":"); len(parts) >= 5 && parts[0] == "v1" {
			name = parts[3]
		} else if strings.Contains(key, ":") {
			return nil, invalid("the file store key '%s' has no form that is known", tenon.Visible(key))
		} else if i := strings.Index(key, "workflow_"); i > 0 {
			name = trimIteration(key[i:])
		} else if i := strings.Index(key, "data_area_"); i > 0 {
			name = trimIteration(key[i:])
		}
		if !safeName(name) {
			return nil, invalid("the file store key '%s' names the file '%s', which is no plain file name", tenon.Visible(key), tenon.Visible(name))
		}
		names = append(names, name)
	}
	return names, nil
}

// trimIteration takes the last part off NAME_ITERATION of the older form.
func trimIteration(s string) string {
	if i := strings.LastIndexByte(s, '_'); i > 0 && strings.Trim(s[i+1:], "-0123456789") == "" && strings.Count(s, "_") > 1 {
		return s[:i]
	}
	return s
}

// safeName reports whether a name is one of a file in the store, on every system.
func safeName(s string) bool {
	if s == "" || len(s) > 200 || s == sumsName || strings.Trim(s, ".") == "" || strings.HasSuffix(s, ".") {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c) {
			return false
		}
	}
	return true
}

// Read reads a file of the store and holds it to its checksum. The error has code
// not_found or invalid.
func (s *Store) Read(name string) ([]byte, error) {
	switch {
	case s == nil || s.files == nil:
		return nil, tenon.Errorf(tenon.CodeNotFound, "the table has no file store, so '%s' is missing", tenon.Visible(name))
	case s.err != nil:
		return nil, invalid("%s: %w", s.name, s.err)
	}
	b, err := readFile(s.files, name, maxFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "'%s' is missing in the file store %s", tenon.Visible(name), s.name)
	}
	if err != nil {
		return nil, invalid("'%s' of the file store %s: %w", tenon.Visible(name), s.name, err)
	}
	sum := sha256.Sum256(b)
	switch want, ok := s.sums[name]; {
	case s.sums == nil:
	case !ok:
		return nil, invalid("'%s' of the file store %s has no checksum in %s", tenon.Visible(name), s.name, sumsName)
	case want != hex.EncodeToString(sum[:]):
		return nil, invalid("'%s' of the file store %s was changed: its checksum is another one than in %s", tenon.Visible(name), s.name, sumsName)
	}
	return b, nil
}

// under returns the files that a key stands for: one, or those of a folder.
func (s *Store) under(name string) ([]string, error) {
	if s == nil || s.files == nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "the table has no file store, so '%s' is missing", tenon.Visible(name))
	}
	st, err := fs.Stat(s.files, name)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "'%s' is missing in the file store %s", tenon.Visible(name), s.name)
	}
	if !st.IsDir() {
		return []string{name}, nil
	}
	var list []string
	err = fs.WalkDir(s.files, name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			list = append(list, p)
		}
		if len(list) > maxFiles {
			err = fmt.Errorf("'%s' has more than %d files", name, maxFiles)
		}
		return err
	})
	if err != nil {
		return nil, invalid("%s: %w", s.name, err)
	}
	return list, nil
}

// bundle is an opened .tooltable.
type bundle struct {
	table interface {
		io.ReaderAt
		Size() int64
	}
	files fs.FS
	none  bool
}

// The names within a bundle.
const (
	bundleTable = "table.arrow"
	bundleStore = "filestore"
)

// openBundle reads the directory of a bundle.
func openBundle(name string, f io.ReaderAt, size int64) (*bundle, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, invalid("%s is not a bundle that can be read: %w", name, err)
	}
	if len(z.File) > maxFiles {
		return nil, invalid("%s has more than %d files", name, maxFiles)
	}
	var table *zip.File
	seen := map[string]bool{}
	var total uint64
	b := &bundle{none: true}
	for _, e := range z.File {
		rest, inStore := strings.CutPrefix(e.Name, bundleStore+"/")
		switch {
		case seen[e.Name]:
			return nil, invalid("%s has '%s' twice", name, tenon.Visible(e.Name))
		case e.Name != path.Clean(e.Name) && e.Name != path.Clean(e.Name)+"/" || strings.HasPrefix(e.Name, "/") || strings.HasPrefix(e.Name, "..") || strings.Contains(e.Name, `\`):
			return nil, invalid("%s has a file whose name leads out of it: '%s'", name, tenon.Visible(e.Name))
		case e.Name == bundleTable:
			table = e
		case inStore && rest != "":
			b.none = false
		}
		seen[e.Name] = true
		if total += e.UncompressedSize64; total > maxBundle || e.UncompressedSize64 > maxBundle {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "%s claims more than %d bytes", name, int64(maxBundle))
		}
	}
	if table == nil {
		return nil, invalid("%s is a zip without %s, so it is no bundle of a tool table", name, bundleTable)
	}
	if b.files, err = fs.Sub(z, bundleStore); err != nil {
		return nil, invalid("%s: %w", name, err)
	}
	if at, err := table.DataOffset(); err == nil && table.Method == zip.Store && at+int64(table.UncompressedSize64) <= size {
		b.table = io.NewSectionReader(f, at, int64(table.UncompressedSize64))
		return b, nil
	}
	if table.UncompressedSize64 > maxPiped {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: its table is compressed and claims more than %d bytes; pack it without compression", name, maxPiped)
	}
	r, err := table.Open()
	if err != nil {
		return nil, invalid("%s: %s: %w", name, bundleTable, err)
	}
	defer r.Close() //nolint:errcheck // its checksum was held to when it was read to its end
	raw, err := io.ReadAll(io.LimitReader(r, maxPiped+1))
	if err != nil {
		return nil, invalid("%s: %s: %w", name, bundleTable, err)
	}
	if len(raw) > maxPiped {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: the compressed table has more than %d bytes", name, maxPiped)
	}
	b.table = bytes.NewReader(raw)
	return b, nil
}

func (b *bundle) store(name string) *Store {
	if b.none {
		return &Store{name: name}
	}
	return newStore(name, b.files)
}

// keeper collects the files that go with a table that is being written.
type keeper struct {
	dir  string // where they are put until the table is whole
	sums map[string]string
	took map[taken]error
}

// taken is a name that was copied from a store, or cannot be. Many rows may have the same one.
type taken struct {
	from *Store
	name string
}

// add copies what the keys of a tool name. Two tables may name the same file; two
// different files of one name cannot both be kept.
func (k *keeper) add(ctx context.Context, from *Store, keys string) error {
	names, err := keyNames(keys)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := taken{from, name}
		err, ok := k.took[at]
		if !ok {
			err = k.copy(ctx, from, name)
			if k.took == nil {
				k.took = map[taken]error{}
			}
			if tenon.ErrorCode(err) != tenon.CodeNotFound { // found out at once, and there is no end of such names
				k.took[at] = err
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy copies what one name stands for.
func (k *keeper) copy(ctx context.Context, from *Store, name string) error {
	list, err := from.under(name)
	if err != nil {
		return err
	}
	for _, file := range list {
		if ctx.Err() != nil {
			return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
		b, err := from.Read(file)
		if err != nil {
			return err
		}
		if err := k.put(file, b); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) put(name string, b []byte) error {
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	switch have, ok := k.sums[name]; {
	case ok && have == hash:
		return nil
	case ok:
		return tenon.Errorf(tenon.CodeConflict, "two tables have different files '%s' in their file stores; pack one of the tools again", name)
	case len(k.sums) >= maxFiles:
		return tenon.Errorf(tenon.CodeTooLarge, "a file store has at most %d files", maxFiles)
	}
	if k.sums == nil {
		k.sums = map[string]string{}
	}
	target := filepath.Join(k.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(target), 0o700)
	if err == nil {
		err = os.WriteFile(target, b, 0o600)
	}
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the folder has another name once it is whole
		}
		return tenon.Errorf(tenon.CodeStore, "the file store of the table cannot be written: %w", err)
	}
	k.sums[name] = hash
	return nil
}

// sumLines is the text of SHA256SUMS.
func (k *keeper) sumLines() []byte {
	var b bytes.Buffer
	for _, n := range k.names() {
		fmt.Fprintf(&b, "%s  %s\n", k.sums[n], n)
	}
	return b.Bytes()
}

// names returns the names of the files that are kept.
func (k *keeper) names() []string { return slices.Sorted(maps.Keys(k.sums)) }

// Workflow reads the packed workflow of a tool.
func (s *Store) Workflow(t *Tool) ([]byte, error) {
	names, err := keyNames(t.Keys)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, tenon.Errorf(tenon.CodeNotFound, "tool '%s' names no packed workflow (field 7)", tenon.Visible(t.Name))
	}
	return s.Read(names[0])
}

// IsKNIME reports whether a packed workflow is one of KNIME's.
func IsKNIME(b []byte) bool {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(z.File, func(f *zip.File) bool { return path.Base(f.Name) == "workflow.knime" })
}
