// Package rawjson is the one walker over raw JSON. It checks, reads and writes JSON without decoding it into Go values.
//
// Tenon needs only a few members of most JSON that it processes: a message of a server, an event of a model's stream, a
// block of a tool's result. Decoding each into a struct would be the largest cost of a call. The package therefore
// works in two modes, and neither allocates:
//
//   - [Check] reads a value of unknown origin once, against the grammar of RFC 8259 and against [Rules]: limits of
//     nesting and number of values, unique keys, valid UTF-8. It reports the byte of the first error.
//   - [Members], [Fields], [Elements], [Field], [List] and [Strings] walk over a checked value. They yield slices of
//     it and do not check it again. On invalid JSON they never panic, but their results are undefined.
//
// Numbers are slices of the input and keep all digits. Members come in the order of the input. The walk yields each of
// several members with the same key. [Field] returns the first of them, while encoding/json uses the last. A caller for
// whom this matters checks with UniqueKeys first.
//
// Package jsonrpc splits messages with it, mcp and the adapters in model read theirs, policy masks arguments, and agent
// reads the events of a journal. The package imports only the standard library.
package rawjson
