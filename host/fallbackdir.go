package host

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// place chooses the folder of the store where [Config.storePath] needs the user's state folder. Without a usable state
// folder, as in a container, the store is in a folder of the user among the temporary files. This folder is always the
// same, so a waiting run is found again and no folders accumulate.
func (c *Config) place() error {
	path, users := c.storePath()
	if c.Store != nil || !users || c.fallbackDir != "" || path != "" && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		return nil
	}
	dir, err := makeFallbackDir(os.TempDir())
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "there is no place for the store: %w; name one with --home", err)
	}
	c.fallbackDir = dir
	return nil
}

// makeFallbackDir makes the user's folder below tmp, where everybody may write. If others can access the folder of this
// name, it makes one with a random name.
func makeFallbackDir(tmp string) (string, error) {
	dir := filepath.Join(tmp, fallbackName())
	if err := os.Mkdir(dir, 0o700); err == nil || os.IsExist(err) {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() && isOnlyOurs(st) {
			return dir, nil
		}
	}
	return os.MkdirTemp(tmp, "tenon-")
}
