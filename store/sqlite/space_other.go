//go:build !linux

package sqlite

import "os"

// freeSpace returns -1: unknown.
func freeSpace(string) int64 { return -1 }

// writable reports whether the file exists. The write of the probe shows whether it can be written.
func writable(path string) error {
	_, err := os.Stat(path)
	return err
}
