//go:build unix

package policy

import "syscall"

var errNoFolder error = syscall.ENOTDIR
