// Package httpapi serves a host over HTTP. Clients start, resume, cancel, steer and follow runs, decide approvals, and
// manage sessions, servers and tools. Like the command line, the package is a surface and has no logic of runs.
//
//	client ──► unix socket or TCP ──► New: checks, routes ──► host.Host
//	  ▲                                       │
//	  └─ JSON · problem+json · event streams ─┘
//
// Start reading at routes.go: its table lists every route of the four APIs with its handler. Every request passes the
// same checks first (guard.go): host and origin, authentication, size, load, and a body of one JSON value in UTF-8.
// Errors are problem details (RFC 9457), made from a [tenon.Error]; problem.go maps its code to the HTTP status.
//
// [Listen] opens the unix socket of tenon serve, which only its owner can use (mode 0600). [Client] is the client for
// the socket and for remote addresses. It implements the handles of package host, so that commands work on a remote
// tenon as on a local one.
package httpapi
