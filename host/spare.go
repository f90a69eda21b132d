package host

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// place finds out where the store can lie, beside what [Config.storePath] says: what
// belongs to no project works without a usable state folder, too, as in a container. It is
// kept in one folder of the user's among the temporary files, the same each time: a run
// that waits there is found again, and nothing piles up.
func (c *Config) place() error {
	path, users := c.storePath()
	if c.Store != nil || !users || c.spare != "" || path != "" && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		return nil
	}
	dir, err := spareFolder(os.TempDir())
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "there is no place for the store: %w; name one with --home", err)
	}
	c.spare = dir
	return nil
}

// spareFolder makes the user's folder below tmp. Everybody may write there: a folder that
// is not the user's alone is not used, but one without a name that others could know.
func spareFolder(tmp string) (string, error) {
	dir := filepath.Join(tmp, spareName())
	if err := os.Mkdir(dir, 0o700); err == nil || os.IsExist(err) {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() && isOnlyOurs(st) {
			return dir, nil
		}
	}
	return os.MkdirTemp(tmp, "tenon-")
}
