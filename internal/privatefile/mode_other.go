//go:build !unix

package privatefile

import "io/fs"

func checkFile(string, fs.FileInfo) error { return nil }

func checkFolder(string, fs.FileInfo) error { return nil }

// Others reports nobody: this system keeps no such bits.
func Others(fs.FileInfo, bool) (Writer, uint32) { return Nobody, 0 }
