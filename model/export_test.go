package model

import "slices"

// Servers returns the table of servers with differences.
func Servers() []Server { return slices.Clone(servers[:]) }
