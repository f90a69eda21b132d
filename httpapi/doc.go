// Package httpapi serves a host over HTTP: start runs, go on with them, stop
// them, tell them something, follow them. It is a surface like the command line
// and holds no logic about runs.
//
//	client ──► unix socket beside the store ──► Handler ──► host.Host
//	  ▲                                            │
//	  └── JSON · problem+json · server-sent events ┘
//
// [Handler] is one table of routes; every request passes the same checks before
// any of them: method, content type, size, that the body is one JSON value of
// known keys in UTF-8. Errors are problem details (RFC 9457) made from a
// [tenon.Error]; its code leads to the status in one table (problem.go).
//
// [Listen] opens the socket that only its owner can use (mode 0600), and
// [Client] is the other end, which tenon run --detach uses.
package httpapi
