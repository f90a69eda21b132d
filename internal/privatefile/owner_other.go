//go:build !unix

package privatefile

import (
	"io/fs"
	"os"
)

// AsOwner returns "": on this system, files have no owner that matters.
func AsOwner(string) string { return "" }

// SameOwner returns false, because this system has no such owners.
func SameOwner(_, _ fs.FileInfo) bool { return false }

// HandOver does nothing on this system.
func HandOver(*os.File) error { return nil }

// MakeFolders is os.MkdirAll with mode 0700.
func MakeFolders(path string) error { return os.MkdirAll(path, 0o700) }
