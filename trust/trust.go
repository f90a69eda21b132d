// Package trust keeps what a person agreed to: which projects may start programs, send
// data and listen.
//
// It stands near the root of the import graph. Package config says which files belong to
// a project, cmd/tenon says what the project would do and asks the person, and this
// package remembers the answer and compares it with what is there now:
//
//	project files ─► config.Project ─► trust.Compare ◄─ trust.Store (the user's state folder)
//	                                        │
//	                                   ask, or go on
//
// A project is trusted as a whole or not at all. A [Record] binds the real path of the
// project's file, the digest of every file that belongs to the project, and the [Item]
// list that the person saw. If one of them differs, the project is not trusted until the
// person agrees to the difference.
//
// Nothing in a project's folder takes part: a [Store] refuses a folder that lies inside
// the project, and files that other users can write.
package trust

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of a project.
const (
	MaxFiles = 10_000  // files
	MaxBytes = 1 << 30 // bytes of all files together
)

// Project is what belongs to a configuration file.
type Project struct {
	// Path is the real path of the file, links resolved. It is empty where there is no
	// project, such as with a configuration from stdin.
	Path string `json:"path"`
	// Dir is the real path of the folder that relative paths in the file are relative to.
	// It differs from the folder of Path where the file was found through a link.
	Dir string `json:"dir"`
	// Files are the files of the project by name: relative to Dir with slashes where they
	// are in it, else absolute.
	Files map[string]File `json:"files"`
	// Texts are the texts of small files by name, without secrets. They show a person what changed, and are not
	// compared.
	Texts map[string]string `json:"texts,omitempty"`
}

// File is one file of a project.
type File struct {
	Digest string `json:"sha256"` // of its bytes, in hex
	Size   int64  `json:"size"`
	// Link is the real path of a file that was named through a link. A link that leads to
	// another file is a change even where the bytes are equal: programs load what lies
	// beside the real file.
	Link string `json:"link,omitempty"`
	// Why says which part of the configuration names the file, such as servers.files.
	Why string `json:"why,omitempty"`
}

// Item is one line of the list that a person agrees to.
type Item struct {
	Kind string `json:"kind"`           // such as command or url; see the kinds of cmd/tenon
	Path string `json:"path,omitempty"` // in the configuration, such as servers.files
	Text string `json:"text"`
}

// Record is a project that a person trusts.
type Record struct {
	Version int `json:"version"`
	Project
	Items []Item    `json:"items"` // what the person saw, in the order of the list
	When  time.Time `json:"when"`
}

// recordVersion is the form of a record; one of another form counts for nothing.
const recordVersion = 1

// Diff says how a project differs from what a person agreed to.
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

// Compare returns the difference between a record and a project with its items. A nil
// record has no files and no items.
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

// without returns the items of one list that another list lacks.
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

// byPath orders records.
func byPath(a, b Record) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Dir, b.Dir)) }
