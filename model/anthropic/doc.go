// Package anthropic speaks the Anthropic Messages API: POST {base}/v1/messages
// with a streamed answer, native tool_use and tool_result blocks.
//
// It stands between the engine's executor, which asks a [tenon.Model], and
// package model, whose Client carries the request, repeats it and names its
// errors. What is here is one wire format and nothing else: encode.go turns a
// conversation into a request body, stream.go turns the events of an answer
// into deltas and a message, decode.go reads a message back from its wire form.
//
// Blocks that only go back (thinking with its signature, redacted thinking,
// server tools, compaction, kinds not known yet) are kept as they came in a
// Part of wire "anthropic" and sent again at the same place; for another
// provider's adapter they do not exist, and its opaque parts are dropped here.
// A message's wire form is made once ([tenon.Message.Encoded]): prompt caching is
// asked for with one member at the top of the request, so that the bytes of
// earlier messages never change.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package anthropic
