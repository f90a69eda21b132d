//go:build unix

package transport

import "syscall"

// checksIdle says that [tcpConn.isAlive] works on this platform.
const checksIdle = true

// isAlive reports whether an idle connection is still open. A server that closes it, or sends something without a
// request, makes it unusable.
func (c *tcpConn) isAlive() bool {
	own, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := own.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		alive = err == syscall.EAGAIN
		return true // do not wait
	})
	return alive && err == nil
}
