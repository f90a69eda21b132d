package transport

// checksIdle says that [tcpConn.isAlive] works on this platform. Without it, [http.Transport] sends all requests.
const checksIdle = false

func (*tcpConn) isAlive() bool { return false }
