package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// TableFile is a table in a file of the project's folder, or an uploaded one.
type TableFile struct {
	ID      string    `json:"id"`     // project:PATH, which is a path in the project's folder, or uploaded:NAME
	Name    string    `json:"name"`   // PATH or NAME
	Source  string    `json:"source"` // project or uploaded
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"`
}

// The sources of a [TableFile].
const (
	tableProject  = "project"
	tableUploaded = "uploaded"
)

// The bounds of the search for tables, and of the uploaded tables.
const (
	maxTableFiles   = 500
	maxTableVisited = 20_000
	maxTableDepth   = 6
	maxUploads      = 1 << 30
)

var tableExtensions = []string{".arrow", ".arrows", ".tooltable"}

func isTableName(name string) bool {
	return slices.Contains(tableExtensions, strings.ToLower(filepath.Ext(name)))
}

// uploadName matches the names of uploaded tables. With maxUploadName, file systems accept them.
var uploadName = lazyregexp.New(`^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_. -]{0,99}$`)

const maxUploadName = 200 // bytes

// uploads returns the folder of the uploaded tables, next to the store.
func (h *Host) uploads() (string, error) {
	path := h.cfg.shared()
	if path == "" {
		return "", tenon.Errorf(tenon.CodeInvalid, "this tenon keeps no files: there is no place for a table")
	}
	return filepath.Join(filepath.Dir(path), "tables"), nil
}

// tableRoot returns the folder of the tables of a source.
func (h *Host) tableRoot(source string) (string, error) {
	switch {
	case source == tableUploaded:
		return h.uploads()
	case source == tableProject && h.config.Path != "":
		return h.config.Dir, nil
	}
	return "", tenon.Errorf(tenon.CodeNotFound, "there are no tables of '%s'", tenon.Visible(source))
}

func (h tablesHandle) List(ctx context.Context) ([]TableFile, error) {
	list := []TableFile{}
	for _, source := range []string{tableUploaded, tableProject} {
		root, err := h.host.tableRoot(source)
		if err != nil {
			continue // the source has no folder
		}
		visited := 0
		err = fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
			visited++
			switch {
			case ctx.Err() != nil:
				return tenon.Errorf(tenon.CodeCancelled, "looking for tables: %w", context.Cause(ctx))
			case visited > maxTableVisited || len(list) >= maxTableFiles:
				return fs.SkipAll
			case err != nil && d != nil && d.IsDir():
				return fs.SkipDir // unreadable folders are left out
			case err != nil:
				return nil
			case d.IsDir():
				if p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" ||
					strings.Count(p, "/") >= maxTableDepth) {
					return fs.SkipDir
				}
				return nil
			// hidden names include the temporary names of uploads
			case !d.Type().IsRegular() || !isTableName(d.Name()) || strings.HasPrefix(d.Name(), "."):
				return nil
			}
			if st, err := d.Info(); err == nil {
				list = append(list, TableFile{ID: source + ":" + p, Name: p, Source: source, Bytes: st.Size(),
					Changed: st.ModTime()})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// tablePath returns the path of a table by its id. Errors: not_found; denied (a link leads out of the folder).
func (h *Host) tablePath(id string) (string, error) {
	source, name, _ := strings.Cut(id, ":")
	root, err := h.tableRoot(source)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(name) || !isTableName(name) {
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no table '%s'", tenon.Visible(id))
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no table '%s'", tenon.Visible(id))
	}
	defer dir.Close()
	st, err := dir.Stat(name) // refuses links that lead out
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", tenon.Errorf(tenon.CodeNotFound, "there is no table '%s'", tenon.Visible(id))
	case err != nil && leadsOut(root, name):
		return "", tenon.Errorf(tenon.CodeDenied, "table '%s' is behind a link that leads out of the folder of its "+
			"tables; copy the file into that folder", tenon.Visible(id))
	case err != nil:
		return "", tenon.Errorf(tenon.CodeDenied, "table '%s': %w", tenon.Visible(id), err)
	case !st.Mode().IsRegular():
		return "", tenon.Errorf(tenon.CodeNotFound, "'%s' is not a file", tenon.Visible(id))
	}
	return filepath.Join(root, name), nil
}

// leadsOut reports whether a path in a folder leads out of it through a link.
func leadsOut(root, name string) bool {
	from, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	to, err := filepath.EvalSymlinks(filepath.Join(root, name))
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(from, to)
	return err != nil || !filepath.IsLocal(rel)
}

func (h tablesHandle) Bytes(ctx context.Context, id string) ([]byte, error) {
	r, err := h.OpenTable(ctx, id)
	if err != nil {
		return nil, err
	}
	b, err := r.whole(id)
	return b, errors.Join(err, r.Close())
}

func (h tablesHandle) OpenTable(_ context.Context, id string) (*TableReader, error) {
	path, err := h.host.tablePath(id)
	if err != nil {
		return nil, err
	}
	f, in, err := openFile(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "table '%s': %w", tenon.Visible(id), err)
	}
	return NewTableReader(in, f.Close), nil
}

func (h tablesHandle) Remove(_ context.Context, id string) error {
	if !strings.HasPrefix(id, tableUploaded+":") {
		return tenon.Errorf(tenon.CodeDenied, "only an uploaded table can be removed")
	}
	path, err := h.host.tablePath(id)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return tenon.Errorf(tenon.CodeStore, "table '%s': %w", tenon.Visible(id), err)
	}
	return nil
}
