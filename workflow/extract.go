package workflow

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Extract writes the files under a folder of the pack into a folder that is not there
// yet; "." is all of the pack. Nothing is left where that fails.
func (p *Pack) Extract(from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(tmp) // the error says more
		}
	}()
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // what was written is closed
	prefix := path.Clean(from) + "/"
	if prefix == "./" {
		prefix = ""
	}
	for _, name := range p.Names() {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if dir := path.Dir(rest); dir != "." {
			if err := root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
				return err
			}
		}
		if err := root.WriteFile(filepath.FromSlash(rest), p.files[name], 0o600); err != nil {
			return err
		}
	}
	return os.Rename(tmp, to)
}
