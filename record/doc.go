// Package record keeps the traffic with models and servers in a folder and plays it
// back: a cassette. `--record DIR` writes one file per request, DIR/model/0001.json and
// DIR/mcp/SERVER/0001.json and so on, in the order in which the requests began;
// `--replay DIR` answers from them, starts no server and reaches no network.
//
// On the side of servers it is a toolset around another one ([Recorder.Toolset],
// [Player.Toolset]), so that one form holds for every transport and both eras of the
// protocol: a file is a [ServerExchange].
//
// On the side of models it stands between an adapter and its HTTP transport ([Recorder.Transport],
// [Player.Transport]), so that what is kept is the provider's own traffic, or
// around a model that has no HTTP, such as a script ([Recorder.Model],
// [Player.Model]); then the request is written in the form of the Anthropic
// Messages API, whose blocks say everything that a request of ours can hold.
// Either way a file is an [Exchange], with the request's JSON body under
// "request", so that one look (or one jq) finds tools and messages.
//
// Keys never get into a file: headers that carry credentials are masked by
// name, and the secrets that the config names are masked wherever they stand.
//
// Replay is strict. A request that no unused recording fits is an error that
// names the first difference to the nearest one, and recordings that were never
// asked for make [Player.Close] fail. Requests are compared without what may
// differ from run to run: ids of calls and the answer's length limit. Recorder and
// player are safe for concurrent use.
package record
