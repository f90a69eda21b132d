// Package openai speaks OpenAI's wire formats: Chat Completions, which Ollama,
// llama.cpp, vLLM, OpenRouter and many others serve too, and Responses.
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
// send it.
//
// responses.go, items.go and responses_stream.go are the Responses API, used
// without state at the provider: the items of an answer are kept as they came, in
// Parts of wire "openai-responses", and go back in their order, encrypted
// reasoning included. A result is one function_call_output item, images inside.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package openai
