// Package anthropic implements the Anthropic Messages API: POST {base}/v1/messages with a streamed
// answer and native tool_use and tool_result blocks.
//
// A [Model] sits between the engine's executor, which uses it as a [tenon.Model], and package
// model, whose Client sends and retries the requests and classifies errors. This package implements
// only the wire format: encode.go encodes a conversation as a request body, stream.go decodes the
// events of an answer to deltas and a message, decode.go decodes a message.
//
// Some blocks are only sent back: thinking with its signature, redacted thinking, server tools,
// compaction, unknown kinds. They are kept unchanged in a Part of wire "anthropic" and sent again
// at the same place. Adapters of other providers drop them, and this package drops the opaque parts
// of other providers. A message is encoded once ([tenon.Message.Encoded]). One member at the top of
// the request enables prompt caching, so the bytes of earlier messages never change.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package anthropic
