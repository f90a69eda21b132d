// Package holodeck converts HoloDeck's agent.yaml, one agent with its model, instructions and tools, and the user's
// config.yaml with servers and providers.
//
// Tools of type mcp become servers. Tools of other types, and keys for which tenon has no equivalent, are kept under
// x-holodeck; test cases are kept for tenon eval. Keys of tenon.yaml may be written in an agent.yaml, next to the keys
// that they belong to: limits, rules, and keys of a server or a model. Any other key is an error, as it is in HoloDeck.
//
// Packages that HoloDeck's agents often name get their settings as arguments or environment variables
// (knownservers.go), because these packages do not read HoloDeck's variable of settings.
//
// Package config calls the [Format], for imports, exports, and an agent.yaml that is loaded as it is.
package holodeck
