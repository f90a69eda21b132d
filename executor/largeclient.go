package executor

import (
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
)

// clientLimit returns the maximum size, in bytes, of the text of a result for a client of the gateway; 0 means no
// limit. The default limits do not apply to clients: they protect the context of tenon's own models, and clients have
// their own limits.
func clientLimit(b policy.Block) int {
	defaults := policy.Block{}.WithDefaults()
	limit := 0
	if b.ResultBytes != defaults.ResultBytes {
		limit = int(b.ResultBytes)
	}
	if n := 4 * b.ResultTokens; b.ResultTokens != defaults.ResultTokens && (limit == 0 || n < limit) {
		limit = n
	}
	return limit
}

// forClient returns the shortened form of a large result for a client of the gateway: a part of the text, and a link
// to a resource with the whole text. If the tool has an output schema, the result is an error, because a part of the
// structured content does not fit the schema.
func forClient(run string, kept *agent.Artifact, form string, limit int, whole string, structured bool,
	rest []tenon.Content, isError bool) *tenon.Result {
	uri := agent.ArtifactURI + run + "/" + kept.ID
	link := tenon.Content{Type: tenon.ContentLink, URI: uri, Name: "full result", MimeType: "text/plain"}
	note := fmt.Sprintf("[%d of %d bytes; the full result is the resource %s]", min(limit, len(whole)), len(whole), uri)
	switch {
	case structured || form == policy.LargeError:
		return &tenon.Result{IsError: true, Content: []tenon.Content{tenon.Text(fmt.Sprintf(
			"the result is too large: %d bytes, at most %d are allowed; it is kept as the resource %s: read it, or "+
				"ask the tool for less", len(whole), limit, uri)), link}}
	case form == policy.LargeArtifact:
		head := tenon.Truncate(whole, min(previewBytes, limit))
		note = fmt.Sprintf("[these are the first %d of %d bytes; the full result is the resource %s]", len(head),
			len(whole), uri)
		return &tenon.Result{IsError: isError, Content: append([]tenon.Content{tenon.Text(head + "\n" + note), link},
			rest...)}
	}
	room := max(limit-len(note)-2, 0)
	head := tenon.Truncate(whole, room*2/3)
	text := head + "\n" + note + "\n" + tenon.TruncateStart(whole, room-len(head))
	return &tenon.Result{IsError: isError, Content: append([]tenon.Content{tenon.Text(text), link}, rest...)}
}
