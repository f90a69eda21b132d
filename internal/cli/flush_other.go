//go:build !windows && (!unix || solaris || aix)

package cli

import "os"

// flushInput does nothing: this system has no call for it.
func flushInput(*os.File) {}
