//go:build !unix

package privatefile

import "io/fs"

func checkFile(string, fs.FileInfo) error { return nil }

func checkFolder(string, fs.FileInfo) error { return nil }

// Others always returns Nobody, because this system has no such mode bits.
func Others(fs.FileInfo, bool) (Writer, uint32) { return Nobody, 0 }
