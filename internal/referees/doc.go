// Package referees has only tests: the official SDKs of Anthropic, OpenAI and Google
// read the same recorded streams as tenon's own adapters (package model and those below
// it), and have to come to the same text, tool calls, usage and stop reason. Where a
// referee cannot read a stream, or reads it in another way, the test names the stream
// and the reason; anything else that differs fails.
//
// aws-sdk-go-v2 and botocore send one request to a stub of Bedrock's runtime, and tenon
// sends the same: the bodies have to be equal, the signatures those of AWS's own signer,
// and the answer, whose frames the SDK's encoder writes, has to be understood alike.
//
// It is a module of its own, because the SDKs must not come into tenon's go.mod: they
// would triple its build. `make referees`, a part of `make peers`, runs it. The
// recordings are those of ../../../shared/data/llm-streams; where that folder is not
// there, the test says so and is skipped.
package referees
