//go:build !unix

package transport

// roles are the roles that exist only on this system.
var roles map[string]func()
