//go:build !unix

package transport

// roles are those of this system.
var roles map[string]func()
