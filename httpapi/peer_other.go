//go:build !linux

package httpapi

import "net"

// peerOf returns 0, because the process at the other end of a unix socket cannot be determined on this system.
func peerOf(net.Conn) int { return 0 }

// isStopped returns false, because the state of other processes cannot be determined on this system.
func isStopped(int) bool { return false }
