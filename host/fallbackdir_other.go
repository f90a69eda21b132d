//go:build !unix

package host

import "io/fs"

// fallbackName contains no user: on these systems each user has a separate folder of temporary files.
func fallbackName() string { return "tenon-state" }

func isOnlyOurs(fs.FileInfo) bool { return true }

// linksOf returns 1: the number is not known on these systems.
func linksOf(fs.FileInfo) int { return 1 }
