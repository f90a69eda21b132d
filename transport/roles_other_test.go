//go:build !unix

package transport

// roles are the roles of the test binary that exist only on this system.
var roles map[string]func()
