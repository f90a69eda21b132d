//go:build !unix

package bench

// cpu returns 0, because the CPU time is not read on this system.
func cpu() int64 { return 0 }
