// Package gemini speaks Google's Gemini API: POST
// {base}/v1beta/models/{model}:streamGenerateContent with a streamed answer.
//
// It stands between the engine's executor, which asks a [tenon.Model], and
// package model, whose Client carries the request, repeats it and names its
// errors. encode.go turns a conversation into a request body, stream.go turns
// the chunks of an answer into deltas and a message, partial.go puts arguments
// together that come in pieces.
//
// Three things are peculiar to this wire. Calls need not have ids: where none
// came the adapter makes one for the journal, and neither call nor result
// carries it back; order and name tie them. A part may carry a thought
// signature, which has to go back on the very part it came with, so such parts
// are kept as they came, in Parts of wire "gemini". And a turn with calls ends
// with STOP like any other, so the parts say whether there are calls.
//
// Images and audio, of users and of tools' results, go inline.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package gemini
