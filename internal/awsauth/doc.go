// Package awsauth finds AWS credentials on this machine and signs requests with them (Signature Version 4).
//
// Package model/bedrock uses it for requests to Amazon Bedrock. The chain has the sources of AWS's own SDKs and
// command line, in their order: a profile that the configuration names; the environment; a web identity in the
// environment; the shared files of AWS, whose profiles can have keys, a sign-in (IAM Identity Center), a program, a
// web identity or a role; the credentials of a container; the role of an EC2 instance.
//
// Why not aws-sdk-go-v2: its modules for credentials and signing add 3.0 MB to the binary and start-up work to every
// command; docs/decisions/0016-clouds.md has the figures. The published test vectors of AWS hold the signatures.
//
// Credentials are kept until shortly before they expire, and [Chain.Forget] drops them after a request that was
// refused. The package never logs, and its errors contain no secret.
//
// Sources: "Create a signed AWS API request" (IAM User Guide), "Standardized credential providers" (AWS SDKs and Tools
// Reference Guide).
package awsauth
