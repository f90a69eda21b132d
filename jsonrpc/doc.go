// Package jsonrpc implements a JSON-RPC 2.0 peer on a stream of messages.
//
// It sits between package transport, which moves raw messages, and package mcp, which defines the methods.
// [Parse] reads each message once. It requires valid UTF-8 and well-formed JSON without duplicate keys,
// within a maximum depth, and returns id, method, params, result and error as slices of the input. Payloads
// are never decoded and re-encoded, so numbers, unknown fields and key order reach the caller byte for byte.
//
// A [Peer] keeps any number of calls in flight in both directions. Its reader never waits for a consumer. It
// delivers responses to the waiting callers, runs requests in a bounded number of goroutines, and passes
// notifications to a hook that must return at once. A caller that gives up is removed from the open calls;
// the Abandoned hook lets the protocol above notify the other side. Late responses are counted and dropped.
//
// On a request-response transport (HTTP), a call needs no reader: Exchange of the stream runs in the caller's
// goroutine and delivers the messages that it reads.
package jsonrpc
