// Package model contains the parts that all model adapters share. An adapter is then only a request
// encoder and a parser for one wire format.
//
// A [tenon.Model] sits between the engine's executor, which passes it a [tenon.Request], and a
// provider's HTTP API. Package config fills [Config]. Package host selects the adapter by
// [Config.Wire] and calls its New(Config, Env). The adapters (model/anthropic, model/openai,
// model/gemini, model/bedrock, model/ollama, model/script) import this package; it imports none of them.
//
// The package contains:
//
//   - [Config] and the table of providers ([Lookup]), with their addresses, key variables and
//     differences ([Quirks]);
//   - [Client]: one HTTP exchange with its timeouts, limits and errors, and the retry policy of
//     all adapters;
//   - [Body]: a request body of shared pieces. A turn of a long conversation neither encodes nor
//     copies earlier messages again;
//   - the texts that replace content without a form on a wire ([Note]).
//
// The wire formats follow the references of the providers and recorded streams.
package model
