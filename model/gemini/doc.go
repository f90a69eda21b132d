// Package gemini implements Google's Gemini API: POST
// {base}/v1beta/models/{model}:streamGenerateContent with a streamed answer.
//
// A [Model] sits between the engine's executor, which uses it as a [tenon.Model], and package
// model, whose Client sends and retries the requests and classifies errors. encode.go encodes a
// conversation as a request body, stream.go decodes the chunks of an answer to deltas and a
// message, partial.go assembles arguments that arrive in pieces.
//
// This wire has three peculiarities:
//
//   - Calls may have no ids. The adapter then makes an id for the journal, but sends it back
//     neither with the call nor with the result; order and name connect them.
//   - A part may have a thought signature, which must be sent back on the same part. Such parts
//     are kept unchanged, in Parts of wire "gemini".
//   - A turn with calls ends with STOP like any other turn, so the parts decide whether there are
//     calls.
//
// Images and audio in user messages and tool results are sent inline.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package gemini
