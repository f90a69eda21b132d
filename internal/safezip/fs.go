package safezip

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Sub returns the files below a folder as a file system.
func (a *Archive) Sub(folder string) fs.FS { return tree{a, strings.TrimSuffix(folder, "/") + "/"} }

// tree is a file system of the files whose names begin with a prefix.
type tree struct {
	a      *Archive
	prefix string // ends in a slash
}

// below returns the files in a folder of the tree and in its subfolders.
func (t tree) below(name string) (prefix string, files []File) {
	prefix = t.prefix
	if name != "." {
		prefix += name + "/"
	}
	from, _ := slices.BinarySearchFunc(t.a.files, prefix,
		func(f File, p string) int { return strings.Compare(f.Name, p) })
	to := from
	for to < len(t.a.files) && strings.HasPrefix(t.a.files[to].Name, prefix) {
		to++
	}
	return prefix, t.a.files[from:to]
}

// Stat implements [fs.StatFS].
func (t tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	if f, ok := t.a.File(t.prefix + name); ok {
		return info{path.Base(name), f.Unpacked, 0}, nil
	}
	if _, files := t.below(name); len(files) > 0 {
		return info{path.Base(name), 0, fs.ModeDir}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// Open implements [fs.FS].
func (t tree) Open(name string) (fs.File, error) {
	st, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		list, err := t.ReadDir(name)
		return &openFolder{list, st.(info)}, err
	}
	f, _ := t.a.File(t.prefix + name)
	return opened{f.Open(), st.(info)}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if st, err := t.Stat(name); err != nil || !st.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	prefix, files := t.below(name)
	var list []fs.DirEntry
	last := ""
	for i := range files {
		child, _, deeper := strings.Cut(files[i].Name[len(prefix):], "/")
		switch {
		case deeper && child == last:
		case deeper:
			last = child
			list = append(list, fs.FileInfoToDirEntry(info{child, 0, fs.ModeDir}))
		default:
			list = append(list, fs.FileInfoToDirEntry(info{child, files[i].Unpacked, 0}))
		}
	}
	slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return list, nil
}

// info describes a file or a folder of an archive.
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode | 0o444 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

// opened is an open file.
type opened struct {
	io.ReadCloser
	info info
}

func (o opened) Stat() (fs.FileInfo, error) { return o.info, nil }

// openFolder is an open folder with the entries that were not returned yet.
type openFolder struct {
	list []fs.DirEntry
	info info
}

func (o *openFolder) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFolder) Close() error               { return nil }

func (o *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: fs.ErrInvalid}
}

func (o *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(o.list)
	} else if len(o.list) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.list))
	list := o.list[:n]
	o.list = o.list[n:]
	return list, nil
}

var (
	_ fs.StatFS      = tree{}
	_ fs.ReadDirFS   = tree{}
	_ fs.File        = opened{}
	_ fs.ReadDirFile = (*openFolder)(nil)
)
