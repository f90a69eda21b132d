//go:build !unix

package config

import (
	"errors"
	"io/fs"
)

// onlyRootWrites refuses every file, because this system has no user root.
func onlyRootWrites(string, fs.FileInfo) error {
	return errors.New("an administrator's file is read on Linux and macOS only")
}
