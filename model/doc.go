// Package model holds what all model adapters share, so that an adapter is
// little more than a request builder and a parser of one wire format.
//
// It stands between the engine's executor, which hands a [tenon.Request] to a
// [tenon.Model], and a provider's HTTP API: package config fills [Config], host
// picks the adapter by [Provider.Wire] and calls its New(Config, Env). The
// adapters (model/anthropic, model/openai, model/script) import this package;
// it imports none of them.
//
// What lives here:
//
//   - [Config] and the table of providers ([Lookup]), with their addresses, key
//     variables and differences ([Quirks]);
//   - [Client]: one HTTP exchange with its timeouts, bounds and errors, and the
//     one retry policy of the house;
//   - [Body]: a request body of shared pieces, so that a long conversation is
//     neither encoded nor copied again on every turn;
//   - the texts that stand for content a wire cannot carry ([Note]).
//
// Wire facts are those of the providers' references and of recorded streams.
package model
