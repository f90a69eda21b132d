//go:build !unix

package host

import "io/fs"

// spareName needs no user in it: elsewhere each user has a folder of temporary files.
func spareName() string { return "tenon-state" }

func isOnlyOurs(fs.FileInfo) bool { return true }
