//go:build !unix

package cli

import "io"

// unreadInput reports false: what a pipe has is only known here by reading it.
func unreadInput(io.Reader) bool { return false }
