package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// A cloned folder may contain links with the names of files that people write, such as report.svg. This file refuses to
// write through a link that leads out of the project. It checks the flags before the command does anything.

// A writtenAs says how a flag names what a command writes.
type writtenAs int

const (
	writtenFile   writtenAs = iota + 1
	writtenPort             // [PORT=]FILE
	writtenFolder           // with the files in it
	writtenNew              // a file that is only created
)

// writingFlags are the flags that name a file or a folder to write. TestWritingFlags compares them with all flags.
var writingFlags = map[string]writtenAs{
	"out":          writtenPort,
	"data-out":     writtenFile,
	"conversation": writtenFile,
	"junit":        writtenFile,
	"record":       writtenFolder,
	"keep":         writtenFolder,
	"home":         writtenFolder,
	"token-file":   writtenNew,
}

// checkWrites refuses flags that would write through a link out of the project. Errors: denied.
func (a *app) checkWrites(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kind := writingFlags[f.Name]
		if kind == 0 || err != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if _, file, ok := strings.Cut(value, "="); ok && kind == writtenPort {
				values = append(values, file)
			}
		}
		for _, value := range values {
			if err == nil && value != "" && value != "-" {
				err = a.mayWrite("--"+f.Name, value, kind)
			}
		}
	})
	return err
}

// mayWrite refuses a path below the working folder or the project's folder if a link leads from there out of both. It
// refuses a relative path elsewhere if a link leads out of the file's folder. An absolute path elsewhere is the
// person's choice.
func (a *app) mayWrite(flag, name string, kind writtenAs) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s %s: %w", flag, name, err)
	}
	if kind == writtenNew {
		if _, err := os.Stat(path); err == nil {
			return nil // it is only read
		}
	}
	base := a.folderAround(path)
	if base == "" && filepath.IsAbs(name) {
		return nil
	}
	if base == "" {
		base = filepath.Dir(path)
	}
	if real, out := config.LeadsOut(base, path); out {
		return tenon.Errorf(tenon.CodeDenied, "nothing is written: %s %s is a link to %s, outside of this project; to "+
			"write there, name that path", flag, name, real)
	}
	if kind != writtenFolder {
		return nil
	}
	link, real := linkInside(base, path)
	if link == "" {
		return nil
	}
	return tenon.Errorf(tenon.CodeDenied, "nothing is written: %s %s contains the link %s to %s, outside of this "+
		"project; name a new folder", flag, name, link, real)
}

// folderAround returns the widest folder of the working folder and the project's folder that contains a path, or ""
// if neither does.
func (a *app) folderAround(path string) (widest string) {
	var bases []string
	if here, err := os.Getwd(); err == nil {
		bases = append(bases, here)
	}
	if file := config.FileOf(a.configOptions()); file != "" {
		bases = append(bases, filepath.Dir(file))
	}
	for _, base := range bases {
		real, err := filepath.EvalSymlinks(base)
		if err != nil {
			real = base
		}
		for _, base := range []string{base, real} {
			rel, err := filepath.Rel(base, path)
			if err == nil && filepath.IsLocal(rel) && (widest == "" || len(base) < len(widest)) {
				widest = base
			}
		}
	}
	return widest
}

// maxLinkDepth is the depth of the files that tenon writes into a folder, such as servers/NAME/1.json of a cassette in
// the folder of an evaluation's case.
const maxLinkDepth = 4

// linkInside returns the first link in a folder that leads out of base, or "" if there is none.
func linkInside(base, folder string) (link, real string) {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", "" // it does not exist yet
	}
	// a folder that cannot be read is skipped
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		rel, _ := filepath.Rel(root, path) // path is below root
		if e.IsDir() && strings.Count(rel, string(filepath.Separator)) >= maxLinkDepth-1 {
			return fs.SkipDir
		}
		if e.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		to, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		if behind, err := filepath.EvalSymlinks(path); err == nil {
			to = behind
		}
		outer, err := filepath.EvalSymlinks(base)
		if err != nil {
			outer = base
		}
		if rel, err := filepath.Rel(outer, to); err == nil && filepath.IsLocal(rel) {
			return nil
		}
		link, real = path, to
		return fs.SkipAll
	})
	return link, real
}
