// Package bedrock implements Amazon Bedrock's Converse API: POST {base}/model/{id}/converse-stream, whose answer is a
// stream of binary frames, and POST {base}/model/{id}/converse for models that cannot stream tool calls.
//
// A [Model] sits between the engine's executor, which uses it as a [tenon.Model], and package model, whose Client sends
// and retries the requests and classifies errors. This package implements only the wire format: encode.go encodes a
// conversation as a request body, frames.go reads the frames of a stream and checks their sums, stream.go decodes their
// events to deltas and a message. Package internal/awsauth finds the credentials and signs each attempt. A key of
// Bedrock (AWS_BEARER_TOKEN_BEDROCK) needs no signature.
//
// The model is the id of a model, of an inference profile such as us.anthropic.claude-…, or an ARN. Reasoning with its
// signature is kept unchanged in a Part of wire "bedrock" and sent again at the same place.
//
// Sources: Bedrock's API reference (Converse, ConverseStream), "Amazon event stream encoding" (Smithy specification),
// and issues of libraries that were tried against the service.
package bedrock
