//go:build !unix

package bench

// cpu is not read on this system.
func cpu() int64 { return 0 }
