//go:build !unix

package policy

import "errors"

// errNoFolder never occurs: on this system such a path does not exist.
var errNoFolder = errors.New("not a directory")
