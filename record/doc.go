// Package record records the traffic with models and servers in a folder and replays it. Such a
// folder is a cassette. `--record DIR` writes one file per request, such as DIR/model/0001.json and
// DIR/mcp/SERVER/0001.json, in the order in which the requests began. `--replay DIR` answers
// requests from these files. It starts no servers and uses no network.
//
// For servers, the package wraps a toolset ([Recorder.Toolset], [Player.Toolset]). So one file
// format, [ServerExchange], covers all transports and both eras of the protocol.
//
// For models, it sits between an adapter and its HTTP transport ([Recorder.Transport],
// [Player.Transport]) and records the provider's own traffic. A model without HTTP, such as a
// script, is wrapped instead ([Recorder.Model], [Player.Model]). Its requests are written in the
// form of the Anthropic Messages API, which can express every [tenon.Request]. Both kinds of file
// are an [Exchange] with the JSON body of the request in the member "request", so one tool (such as
// jq) finds tools and messages in both.
//
// Cassettes contain no secrets. Headers with credentials are masked by name, and the secrets of the
// configuration are masked wherever they occur.
//
// Replay is strict. A request without a matching unused recording is an error that names the first
// difference to the nearest recording. Unused recordings make [Player.Close] fail. The comparison
// ignores members that may differ between runs: ids of calls and the length limit of the answer.
// Recorder and Player are safe for concurrent use.
package record
