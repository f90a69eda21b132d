package mcp

import (
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// The supported revision of the modern era, in which every request is independent, and the latest revision of the
// legacy era, which begins with initialize.
const (
	Modern       = "2026-07-28"
	LatestLegacy = "2025-11-25"
)

// legacy lists the revisions of the legacy era, newest first.
var legacy = [...]string{LatestLegacy, "2025-06-18", "2025-03-26", "2024-11-05"}

// IsLegacy reports whether a revision is a supported one of the legacy era.
func IsLegacy(version string) bool { return slices.Contains(legacy[:], version) }

// The error codes of the protocol (2026-07-28, basic).
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// isModernError reports whether an error can only come from a modern server.
func isModernError(e *jsonrpc.Error) bool {
	return e.Code == codeHeaderMismatch || e.Code == codeMissingCapability || e.Code == codeUnsupportedVersion
}

// The members of _meta. In the legacy era, initialize contained this information.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	// metaSettings contains ClientConfig.Settings.
	metaSettings = "tenon/config"
	// metaKey contains tenon.Call.Key, which is the same for all attempts of a step.
	metaKey = "tenonhq.github.io/idempotencyKey"
)

// member appends `"key":value`, with a comma in front unless it is the first.
func member(b []byte, key string, value []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '{' && b[n-1] != '[' {
		b = append(b, ',')
	}
	b = rawjson.AppendString(b, key)
	b = append(b, ':')
	return append(b, value...)
}

// text appends a member whose value is a string.
func text(b []byte, key, value string) []byte {
	return member(b, key, rawjson.AppendString(nil, value))
}
