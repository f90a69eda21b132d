// Package safezip reads zip archives that strangers made, within bounds of memory.
//
// archive/zip trusts an archive: it keeps the whole directory in memory, whatever its size, and leaves
// the checks of sizes and names to its caller. An archive of a few kilobytes can therefore fill the memory
// or lead a program out of its folder. This package reads the same format with its own strict reader:
//
//	end record ──► directory ──► local headers ──► Archive ──► one file at a time
//
// [Open] checks the number of entries and the size of the directory before it reads the directory. It
// refuses archives that two programs could read differently: overlapping entries, bytes outside all
// entries, headers that disagree, names that differ only by case, and more than one end record. It also
// refuses links, encrypted files and names that lead out of the archive. It never reads file contents.
//
// [File.Open] decompresses one file as a stream. It fails if the content differs from the declared size or
// checksum. Archives inside an archive are plain files. Packages table and workflow open their archives here.
//
// Source: APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3 to 4.5.
package safezip

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Limits bound an archive. Every limit must be positive.
type Limits struct {
	Files     int   // entries, including folders
	Directory int64 // bytes of the directory: names, extra fields and comments of all entries
	Unpacked  int64 // bytes of all decompressed files
}

// Archive is a checked archive. It may be used concurrently if its reader may.
type Archive struct {
	name  string
	r     io.ReaderAt
	files []File // sorted by name
	// folders are the names of the entries that are folders.
	folders []string
}

// File is a file of an archive.
type File struct {
	Name     string // relative, with slashes, without "." and ".."
	Unpacked int64  // bytes of the decompressed content
	packed   int64
	header   int64 // offset of the local header
	data     int64 // offset of the compressed content
	crc      uint32
	method   uint16
	flags    uint16
	folder   bool
	archive  *Archive
}

// ErrFormat means that the bytes are not a zip archive at all. [Open] wraps it.
var ErrFormat = errors.New("it has no end record of a zip archive")

// remedy is the end of errors about damaged and hostile archives.
const remedy = "get the archive again, or pack its files again with an ordinary zip program"

// bad returns an error about the whole archive.
func (a *Archive) bad(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeInvalid, a.name+": "+format+"; "+remedy, args...)
}

// large returns an error about a limit.
func (a *Archive) large(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeTooLarge, a.name+": "+format+"; split the archive", args...)
}

// shown returns an entry's name for errors: visible and not too long.
func shown(name string) string {
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "") + "…"
	}
	return strings.NewReplacer("\n", `\u{a}`, "\t", `\u{9}`).Replace(tenon.Visible(name))
}

// Open checks an archive of size bytes. It reads the end record, the directory and the local headers. name is the
// archive's name in errors. Errors: invalid, too_large, store (r failed).
func Open(name string, r io.ReaderAt, size int64, limits Limits) (*Archive, error) {
	a := &Archive{name: strings.ReplaceAll(tenon.Visible(name), "%", "%%"), r: r}
	end, err := a.findEnd(size)
	if err != nil {
		return nil, err
	}
	if err := a.checkEnd(end, limits); err != nil {
		return nil, err
	}
	if err := a.readDirectory(end, limits); err != nil {
		return nil, err
	}
	if err := a.checkNames(); err != nil {
		return nil, err
	}
	if err := a.checkHeaders(end.directory); err != nil {
		return nil, err
	}
	for _, f := range a.files {
		if f.folder {
			a.folders = append(a.folders, strings.TrimSuffix(f.Name, "/"))
		}
	}
	a.files = slices.DeleteFunc(a.files, func(f File) bool { return f.folder })
	a.files = slices.Clip(a.files)
	slices.SortFunc(a.files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	for i := range a.files {
		a.files[i].archive = a
	}
	return a, nil
}

// Folders returns the names of the folders that have their own entries, without a final slash. The caller must not
// modify the list.
func (a *Archive) Folders() []string { return a.folders }

// Files returns the files sorted by name, without folders. The caller must not modify the list.
func (a *Archive) Files() []File { return a.files }

// File finds a file by its exact name.
func (a *Archive) File(name string) (*File, bool) {
	i, ok := slices.BinarySearchFunc(a.files, name, func(f File, name string) int {
		return strings.Compare(f.Name,
			name)
	})
	if !ok {
		return nil, false
	}
	return &a.files[i], true
}

// readAt fills b from the archive.
func (a *Archive) readAt(b []byte, at int64) error {
	if at < 0 {
		return a.bad("a record is outside the archive")
	}
	n, err := a.r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return a.bad("it is cut off")
	}
	return tenon.Errorf(tenon.CodeStore, a.name+": %w", err)
}
