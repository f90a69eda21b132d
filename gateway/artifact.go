package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// artifact answers resources/read for a result that was too large for its message. at is RUN/ID. Only the principal of
// the run may read it. Errors: not_found.
func (d *door) artifact(ctx context.Context, h *host.Host, uri, at string) (json.RawMessage, error) {
	missing := tenon.Errorf(tenon.CodeNotFound, "there is no resource '%s'", tenon.Visible(uri))
	run, id, ok := strings.Cut(at, "/")
	if !ok || run == "" || id == "" {
		return nil, missing
	}
	row, err := h.Runs().Get(ctx, run)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
		return nil, err
	}
	if err != nil || row.ID != run || row.Owner() != d.key.who {
		return nil, missing // also if it is somebody else's, so that ids cannot be probed
	}
	data, mimeType, err := h.Runs().Open(row.ID).Artifact(ctx, id)
	if err != nil {
		return nil, err
	}
	one := text(text([]byte{'{'}, "uri", uri), "mimeType", mimeType)
	if utf8.Valid(data) {
		one = text(one, "text", string(data))
	} else {
		one = text(one, "blob", base64.StdEncoding.EncodeToString(data))
	}
	b := member(append([]byte{'{'}, private...), "contents", joined([]json.RawMessage{append(one, '}')}))
	return append(b, '}'), nil
}
