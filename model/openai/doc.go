// Package openai implements OpenAI's wire formats: Chat Completions, which Ollama, llama.cpp, vLLM,
// OpenRouter and many other servers also provide, and Responses.
//
// A model sits between the engine's executor, which uses it as a [tenon.Model], and package model,
// whose Client sends and retries the requests and classifies errors. One table, [model.Quirks],
// contains the differences between these servers in requests. The parser accepts all known variants
// of a stream without a switch.
//
// chat.go and encode.go encode a conversation as a request body, stream.go decodes chunks to deltas
// and a message. A tool result is a message of role tool. Images of results follow in a user
// message, because a tool message contains only text. Reasoning is kept in its original members, in
// a Part of wire "openai-chat". It is sent back only to servers to which the recorded clients send
// it.
//
// responses.go, items.go and responses_stream.go implement the Responses API without state at the
// provider. The items of an answer are kept unchanged, in Parts of wire "openai-responses". They
// are sent back in their order, including encrypted reasoning. A result is one function_call_output
// item, which contains its images.
//
// Source: the provider's API reference of autumn 2026 and recorded streams.
package openai
