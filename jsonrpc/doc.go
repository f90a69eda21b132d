// Package jsonrpc is a JSON-RPC 2.0 peer on a stream of messages.
//
// It stands between package transport, which moves raw messages, and package
// mcp, which knows what the methods mean. A message is looked at once: [Parse]
// checks that it is well-formed JSON in valid UTF-8 without duplicate keys and
// within a depth, and finds id, method, params, result and error as slices of
// the bytes that came. Nothing is decoded into maps and written again, so
// numbers, unknown fields and their order reach the caller byte for byte.
//
// A [Peer] keeps any number of calls in flight in both directions. Its reader
// never waits for a consumer: answers go to the waiting caller, requests to
// goroutines of a bounded number, notices to a hook that must return at once.
// A caller that gives up is forgotten; a hook lets the protocol above tell the
// other side. An answer that comes late is counted and dropped.
//
// Over a transport of requests and answers (HTTP) a call needs no reader: the
// stream's Exchange runs in the caller's goroutine and delivers what it reads.
package jsonrpc
