//go:build unix

package bench

import "syscall"

// cpu returns the user and system time of this process in nanoseconds.
func cpu() int64 {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}
