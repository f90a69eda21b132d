package workflow

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Extract writes the files and the empty folders under a folder of the pack into a new folder. "." selects the whole
// pack. On an error it leaves nothing behind.
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
			_ = os.RemoveAll(tmp) // the first error is more useful
		}
	}()
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // all files are closed
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
		if err := p.files[name].extract(root, filepath.FromSlash(rest)); err != nil {
			return err
		}
	}
	for _, name := range p.folders {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if err := root.MkdirAll(filepath.FromSlash(rest), 0o700); err != nil {
				return err
			}
		}
	}
	return os.Rename(tmp, to)
}

// extract writes the file to a new file below root.
func (f packedFile) extract(root *os.Root, name string) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.copyTo(out), out.Close())
}
