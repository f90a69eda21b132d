// Package openai speaks OpenAI's wire formats; for now Chat Completions, which
// Ollama, llama.cpp, vLLM, OpenRouter and many others serve too.
//
// It stands between the engine's executor, which asks a [tenon.Model], and
// package model, whose Client carries the request, repeats it and names its
// errors. In what these servers differ stands in one table, [model.Quirks]; what
// they may do to a stream is borne by the parser without any switch.
//
// chat.go and encode.go turn a conversation into a request body, stream.go
// turns chunks into deltas and a message. A tool result is one message of role
// tool; images of results follow in a user message, because a tool message takes
// text only. Reasoning is kept as the members it came in, in a Part of wire
// "openai-chat", and goes back only to servers to which the recorded clients
// send it. The Responses API will be a second wire in this package.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package openai
