// Package trust records the consent of a person to projects: a trusted project may start programs, send data and
// listen.
//
// It has few dependencies. Package config finds the files of a project, and internal/cli lists what the project would
// do and asks the person. This package stores the answer, and later compares it with the present project:
//
//	project files ─► config.Project ─► trust.Compare ◄─ trust.Store (the user's state folder)
//	                                        │
//	                                   ask, or go on
//
// A project is trusted as a whole or not at all. A [Record] contains the real path of the project's file, the digests
// of all files of the project, and the list of [Item] values that the person saw. If one of them differs, the project
// is not trusted until the person agrees to the difference.
//
// Nothing in a project's folder can grant trust: a [Store] refuses a folder that is inside the project, and files that
// other users can write.
package trust

import (
	"cmp"
	"slices"
	"time"
)

// Limits of a project.
const (
	MaxFiles = 10_000  // files
	MaxBytes = 1 << 30 // bytes of all files together
)

// Project is a configuration file with all files that belong to it.
type Project struct {
	// Path is the real path of the file, with links resolved. It is empty if there is no project, for example if the
	// configuration comes from stdin.
	Path string `json:"path"`
	// Dir is the real path of the folder to which relative paths in the file refer. It differs from the folder of
	// Path if the file was found through a link.
	Dir string `json:"dir"`
	// Files maps the names of the project's files to their contents. A name is relative to Dir, with slashes, if the
	// file is in Dir; otherwise it is absolute.
	Files map[string]File `json:"files"`
	// Texts are the texts of small files by name, without secrets. They show a person what changed, and are not
	// compared.
	Texts map[string]string `json:"texts,omitempty"`
}

// File is one file of a project.
type File struct {
	Digest string `json:"sha256"` // of its bytes, in hex
	Size   int64  `json:"size"`
	// Link is the real path of a file that was named through a link. If the link leads to another file, the project
	// differs even if the bytes are equal, because programs load files from the folder of the real file.
	Link string `json:"link,omitempty"`
	// Why is the part of the configuration that names the file, such as servers.files.
	Why string `json:"why,omitempty"`
}

// Item is one line of the list that a person agrees to.
type Item struct {
	Kind string `json:"kind"`           // such as command or url; see the kinds of internal/cli
	Path string `json:"path,omitempty"` // path in the configuration, such as servers.files
	Text string `json:"text"`
}

// Record is a project that a person trusts.
type Record struct {
	Version int `json:"version"`
	Project
	Items []Item    `json:"items"` // what the person saw, in the order of the list
	When  time.Time `json:"when"`
}

// recordVersion is the version of records. Records of other versions are ignored.
const recordVersion = 1

// Diff is the difference between a project and the project that a person agreed to.
type Diff struct {
	Added   []Item   `json:"added,omitempty"`   // items that nobody agreed to
	Removed []Item   `json:"removed,omitempty"` // items that are gone, which needs no consent
	New     []string `json:"new,omitempty"`     // files that nobody agreed to
	Changed []string `json:"changed,omitempty"` // files with other bytes, or behind another link
	Gone    []string `json:"gone,omitempty"`    // files that are not part of the project any more
}

// Empty reports whether a person has agreed to everything.
func (d Diff) Empty() bool {
	return len(d.Added)+len(d.New)+len(d.Changed)+len(d.Gone) == 0
}

// Compare returns the difference between a record and a project with its items. A nil record is treated as a record
// without files and items.
func Compare(r *Record, p Project, items []Item) Diff {
	var d Diff
	if r == nil {
		r = &Record{}
	}
	for name, f := range p.Files {
		was, ok := r.Files[name]
		switch {
		case !ok:
			d.New = append(d.New, name)
		case was.Digest != f.Digest || was.Size != f.Size || was.Link != f.Link:
			d.Changed = append(d.Changed, name)
		}
	}
	for name := range r.Files {
		if _, ok := p.Files[name]; !ok {
			d.Gone = append(d.Gone, name)
		}
	}
	d.Added, d.Removed = without(items, r.Items), without(r.Items, items)
	slices.Sort(d.New)
	slices.Sort(d.Changed)
	slices.Sort(d.Gone)
	return d
}

// without returns the items that are in list but not in other.
func without(list, other []Item) (rest []Item) {
	has := make(map[Item]bool, len(other))
	for _, i := range other {
		has[i] = true
	}
	for _, i := range list {
		if !has[i] {
			rest = append(rest, i)
		}
	}
	return rest
}

// Merge returns the items of a new record. If the files have not changed since the record before, its items stay
// approved, so that a variable of the environment with changing values asks once for each value. New items come last.
func Merge(before *Record, p Project, items []Item) []Item {
	out := slices.Clone(items)
	if before == nil {
		return out
	}
	if d := Compare(before, p, nil); len(d.New)+len(d.Changed)+len(d.Gone) > 0 {
		return out
	}
	more := without(before.Items, items)
	return append(out, more[:min(len(more), max(0, maxItems-len(out)))]...)
}

// maxItems bounds the items of a record.
const maxItems = 100_000

// byPath compares records in the order of their paths.
func byPath(a, b Record) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Dir, b.Dir)) }
