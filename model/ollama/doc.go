// Package ollama implements Ollama's own chat API: POST {base}/api/chat, whose answer is a stream of JSON lines.
//
// A [Model] sits between the engine's executor, which uses it as a [tenon.Model], and package model, whose Client sends
// and retries the requests and classifies errors. This package implements only the wire format: encode.go encodes a
// conversation as a request body, lines.go splits a stream into lines, stream.go decodes the lines to deltas and a
// message. It is used for models of provider ollama with `api: ollama`; otherwise they use Ollama's route in OpenAI's
// format, which package openai implements.
//
// In contrast to that route, this API takes the size of the context and the time that a model stays loaded, does not
// overwrite the sampling settings of the model, and reports a conversation that is too long. By default, Ollama drops
// the oldest messages without notice. Thinking is kept as a Part of wire "ollama" and sent again in its message.
//
// Sources: ollama/ollama at fb30760996871fa9460115c753afd2c60d4ab0f7, api/types.go (ChatRequest, ChatResponse),
// server/routes.go (ChatHandler, streamResponse), llm/llama_server.go (errors).
package ollama
