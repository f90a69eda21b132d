package sqlite

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that a user may still write to the disk of a folder, or -1.
func freeSpace(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// writable reports why a file cannot be written: its mode, an attribute such as immutable, or its mount. It does not
// open the file, because closing it would release SQLite's locks of this process.
func writable(path string) error { return unix.Access(path, unix.W_OK) }
