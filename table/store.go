package table

import (
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
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// The limits of a file store.
const (
	maxFile   = 256 << 20 // bytes of one file of a store
	maxFiles  = 1 << 16   // files of a store
	maxBundle = 4 << 30   // bytes of a bundle
	maxSums   = 10 << 20  // bytes of SHA256SUMS
	sumsName  = "SHA256SUMS"
)

// Store is the file store of a table: the packed workflows of its tools, and their data. It is a
// folder next to the table, or a part of a bundle. A missing or changed file is an error only when
// it is read.
type Store struct {
	name  string
	files fs.FS // nil if there is no store
	sums  map[string]string
	err   error                                       // the error of reading the sums
	root  *os.Root                                    // the folder, or nil
	seen  func(path, digest string, size int64) error // as in Options; nil for a bundle
}

// dirStore returns the store next to a table.
func dirStore(table string, o Options) *Store {
	dir := table + ".filestore"
	root, err := os.OpenRoot(dir) // no file name and no symbolic link leads out of the root
	if err != nil {
		return &Store{name: dir}
	}
	s := &Store{name: dir, files: root.FS(), root: root, seen: o.Seen}
	s.sums, s.err = s.readSums()
	return s
}

// close closes the folder.
func (s *Store) close() error {
	if s == nil || s.root == nil {
		return nil
	}
	return s.root.Close()
}

func newStore(name string, files fs.FS) *Store {
	s := &Store{name: name, files: files}
	s.sums, s.err = s.readSums()
	return s
}

// readSums reads SHA256SUMS. It returns nil if the store does not have the file.
func (s *Store) readSums() (map[string]string, error) {
	b, err := s.readFile(sumsName, maxSums)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		sum, name, _ := strings.Cut(lines.Text(), " ")
		if len(sum) != 64 || name == "" || name[0] != ' ' && name[0] != '*' { // sha256sum writes ' ' or '*'
			return nil, fmt.Errorf("%s: '%s' is not a line of a checksum file", sumsName, tenon.Visible(lines.Text()))
		}
		if len(sums) >= maxFiles {
			return nil, fmt.Errorf("%s has more than %d lines", sumsName, maxFiles)
		}
		sums[name[1:]] = strings.ToLower(sum)
	}
	return sums, lines.Err()
}

// readFile reads a file of the store and reports it to seen.
func (s *Store) readFile(name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	_, err := s.copyFile(&b, name, limit)
	return b.Bytes(), err
}

// copyFile copies a file of the store to w, reports it to seen, and returns its SHA-256 digest in hex. After an
// error the caller must not use what w has received.
func (s *Store) copyFile(w io.Writer, name string, limit int64) (digest string, err error) {
	h := sha256.New()
	n, err := copyFile(io.MultiWriter(w, h), s.files, name, limit)
	if err != nil {
		return "", err
	}
	digest = hex.EncodeToString(h.Sum(nil))
	if s.seen != nil {
		err = s.seen(filepath.Join(s.name, filepath.FromSlash(name)), digest, n)
	}
	return digest, err
}

// copyFile copies a file of at most limit bytes. It opens only regular files, because opening a pipe without a writer
// would block.
func copyFile(w io.Writer, files fs.FS, name string, limit int64) (int64, error) {
	st, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return 0, err
	case st.IsDir():
		return 0, errors.New("it is a folder, not a file")
	case !st.Mode().IsRegular():
		return 0, errors.New("it is not a regular file")
	case st.Size() > limit: // checked before anything is decompressed
		return 0, fmt.Errorf("it has more than %d bytes", limit)
	}
	f, err := files.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	n, err := io.Copy(w, io.LimitReader(f, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return n, err
}

// keyNames returns the file names of file store keys. Each key is v1:STORE:INDEX:NAME:ITERATION…,
// the older form of it with underscores, or a bare name.
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
			return nil, invalid("the file store key '%s' has an unknown form", tenon.Visible(key))
		} else if i := strings.Index(key, "workflow_"); i > 0 {
			name = trimIteration(key[i:])
		} else if i := strings.Index(key, "data_area_"); i > 0 {
			name = trimIteration(key[i:])
		}
		if !safeName(name) {
			return nil, invalid("the file store key '%s' names the file '%s', which is not a plain file name",
				tenon.Visible(key), tenon.Visible(name))
		}
		names = append(names, name)
	}
	return names, nil
}

// trimIteration removes the iteration from NAME_ITERATION in a key of the older form.
func trimIteration(s string) string {
	i := strings.LastIndexByte(s, '_')
	if i > 0 && strings.Trim(s[i+1:], "-0123456789") == "" && strings.Count(s, "_") > 1 {
		return s[:i]
	}
	return s
}

// safeName reports whether a name is a valid file name on every system and is not reserved.
func safeName(s string) bool {
	if s == "" || len(s) > 200 || s == sumsName || strings.Trim(s, ".") == "" || strings.HasSuffix(s, ".") {
		return false
	}
	for _, c := range s {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && !strings.ContainsRune("._-", c) {
			return false
		}
	}
	return true
}

// Read reads a file of the store and verifies its checksum. The error has code not_found or
// invalid.
func (s *Store) Read(name string) ([]byte, error) {
	var b bytes.Buffer
	if _, err := s.copyTo(&b, name); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// copyTo copies a file of the store to w, verifies its checksum and returns its SHA-256 digest in hex. After an
// error the caller must not use what w has received. The error has code not_found or invalid.
func (s *Store) copyTo(w io.Writer, name string) (digest string, err error) {
	switch {
	case s == nil || s.files == nil:
		return "", s.missing(name)
	case s.err != nil:
		return "", invalid("%s: %w", s.name, s.err)
	}
	digest, err = s.copyFile(w, name, maxFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return "", s.missing(name)
	}
	if err != nil {
		return "", invalid("'%s' of the file store %s: %w", tenon.Visible(name), s.name, err)
	}
	switch want, ok := s.sums[name]; {
	case s.sums == nil:
	case !ok:
		return "", invalid("'%s' of the file store %s has no checksum in %s", tenon.Visible(name), s.name, sumsName)
	case want != digest:
		return "", invalid("'%s' of the file store %s was changed: its checksum differs from %s",
			tenon.Visible(name), s.name, sumsName)
	}
	return digest, nil
}

// missing returns the error for a file that the store does not have.
func (s *Store) missing(name string) error {
	if s == nil || s.files == nil {
		return tenon.Errorf(tenon.CodeNotFound, "the table has no file store, so '%s' is missing", tenon.Visible(name))
	}
	return tenon.Errorf(tenon.CodeNotFound, "'%s' is missing in the file store %s", tenon.Visible(name), s.name)
}

// under returns the files of a key's name: the file itself, or all files of a folder.
func (s *Store) under(name string) ([]string, error) {
	if s == nil || s.files == nil {
		return nil, s.missing(name)
	}
	st, err := fs.Stat(s.files, name)
	if err != nil {
		return nil, s.missing(name)
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
			err = fmt.Errorf("'%s' has more than %d files", tenon.Visible(name), maxFiles)
		}
		return err
	})
	if err != nil {
		return nil, invalid("%s: %w", s.name, err)
	}
	return list, nil
}

// bundle is an open .tooltable file.
type bundle struct {
	table file
	files fs.FS
	none  bool           // the bundle has no file store
	spool *safezip.Spool // the decompressed table, or nil
}

// The names of the entries of a bundle.
const (
	bundleTable = "table.arrow"
	bundleStore = "filestore"
)

// bundleLimits bound bundles and the packed workflows of other programs.
var bundleLimits = safezip.Limits{Files: maxFiles, Directory: 8 << 20, Unpacked: maxBundle}

// openBundle checks a bundle and finds its table. A compressed table is decompressed to a temporary file.
func openBundle(name string, f io.ReaderAt, size int64) (*bundle, error) {
	a, err := safezip.Open(name, f, size, bundleLimits)
	if err != nil {
		return nil, err
	}
	table, ok := a.File(bundleTable)
	if !ok {
		return nil, invalid("%s is a zip without %s, so it is no bundle of a tool table", name, bundleTable)
	}
	b := &bundle{files: a.Sub(bundleStore)}
	_, err = fs.Stat(b.files, ".")
	b.none = err != nil
	if stored, ok := table.Stored(); ok {
		b.table = stored
		return b, nil
	}
	if table.Unpacked > maxPiped {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: its table is compressed and claims more than %d bytes; "+
			"pack it without compression", name, maxPiped)
	}
	if b.spool, err = safezip.NewSpool(name, maxPiped, table.CopyTo); err != nil {
		return nil, err
	}
	b.table = b.spool
	return b, nil
}

func (b *bundle) store(name string) *Store {
	if b.none {
		return &Store{name: name}
	}
	return newStore(name, b.files)
}

// keeper copies the files of the tools of a table that is being written.
type keeper struct {
	dir  string // a temporary folder, until the table is complete
	sums map[string]string
	took map[taken]error
}

// taken is a file name in a store. Many rows may name the same file, so its copy is attempted once.
type taken struct {
	from *Store
	name string
}

// add copies the files that a tool's keys name. Two tables may contain the same file, but not two
// different files with one name.
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
			if tenon.ErrorCode(err) != tenon.CodeNotFound { // cheap to detect again, and their number is unbounded
				k.took[at] = err
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy copies the files of a key's name.
func (k *keeper) copy(ctx context.Context, from *Store, name string) error {
	list, err := from.under(name)
	if err != nil {
		return err
	}
	for _, file := range list {
		if ctx.Err() != nil {
			return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
		err := k.take(file, func(w io.Writer) (string, error) { return from.copyTo(w, file) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) put(name string, b []byte) error {
	return k.take(name, func(w io.Writer) (string, error) {
		sum := sha256.Sum256(b)
		_, err := w.Write(b)
		return hex.EncodeToString(sum[:]), err
	})
}

// take copies a file through a temporary file. copy writes the content and returns its digest.
func (k *keeper) take(name string, copy func(io.Writer) (string, error)) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return cannotKeep(err)
	}
	temp, err := os.CreateTemp(k.dir, ".copy-*")
	if err != nil {
		return cannotKeep(err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // it is not there after the rename
	hash, err := copy(temp)
	closed := temp.Close()
	var te *tenon.Error
	switch {
	case errors.As(err, &te):
		return err
	case err != nil || closed != nil:
		return cannotKeep(errors.Join(err, closed))
	}
	switch have, ok := k.sums[name]; {
	case ok && have == hash:
		return nil
	case ok:
		return tenon.Errorf(tenon.CodeConflict, "two tables have different files '%s' in their file stores; "+
			"pack one of the tools again", tenon.Visible(name))
	case len(k.sums) >= maxFiles:
		return tenon.Errorf(tenon.CodeTooLarge, "a file store has at most %d files", maxFiles)
	}
	if k.sums == nil {
		k.sums = map[string]string{}
	}
	target := filepath.Join(k.dir, filepath.FromSlash(name))
	if err = os.MkdirAll(filepath.Dir(target), 0o700); err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		return cannotKeep(err)
	}
	k.sums[name] = hash
	return nil
}

// cannotKeep returns the error for a file store that cannot be written. It omits paths, because they are temporary.
func cannotKeep(err error) error {
	return tenon.Errorf(tenon.CodeStore, "the file store of the table cannot be written: %w", wholefile.Reason(err))
}

// sumLines returns the contents of SHA256SUMS.
func (k *keeper) sumLines() []byte {
	var b bytes.Buffer
	for _, n := range k.names() {
		fmt.Fprintf(&b, "%s  %s\n", k.sums[n], n)
	}
	return b.Bytes()
}

// names returns the names of the copied files in order.
func (k *keeper) names() []string { return slices.Sorted(maps.Keys(k.sums)) }

// Workflow copies the packed workflow of a tool and verifies its checksum. A copy of more than 1 MiB is in a
// temporary file, which the garbage collector removes. The error has code not_found, invalid or store.
func (s *Store) Workflow(t *Tool) (*io.SectionReader, error) {
	names, err := keyNames(t.Keys)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, tenon.Errorf(tenon.CodeNotFound, "tool '%s' names no packed workflow (field 7)",
			tenon.Visible(t.Name))
	}
	copied, err := safezip.NewSpool(names[0], maxFile, func(w io.Writer) error {
		_, err := s.copyTo(w, names[0])
		return err
	})
	if err != nil {
		return nil, err
	}
	return copied.Section(), nil
}

// IsKNIME reports whether a packed workflow of size bytes is a KNIME workflow.
func IsKNIME(in io.ReaderAt, size int64) bool {
	a, err := safezip.Open("workflow", in, size, bundleLimits)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(a.Files(), func(f safezip.File) bool { return path.Base(f.Name) == "workflow.knime" })
}
