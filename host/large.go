package host

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
)

// previewBytes is how much of a large result the model gets at once where the rest
// is for it to read.
const previewBytes = 1 << 10

// bounded cuts the text of a result that is larger than the tool's rules allow. The
// whole text is kept as a blob of the run, of which the artifact tells.
func (h *Host) bounded(ctx context.Context, a engine.Attempt, b policy.Block, r *tenon.Result) (*tenon.Result, *agent.Artifact, error) {
	if a.Row.Core != agent.Version {
		return r, nil, nil // a person's own call
	}
	limit := min(int(b.ResultBytes), 4*b.ResultTokens) // four bytes a token
	var texts []string
	var rest []tenon.Content
	size := 0
	for _, c := range r.Content {
		if c.Text == "" {
			rest = append(rest, c)
			continue
		}
		texts = append(texts, c.Text)
		size += len(c.Text) + 1
	}
	if len(r.Content) == 0 {
		texts, size = []string{string(r.Structured)}, len(r.Structured)
	}
	if size <= limit+1 {
		return r, nil, nil
	}
	whole := strings.Join(texts, "\n")
	digest, err := h.store.PutBlob(ctx, a.Row.ID, []byte(whole))
	if err != nil {
		return nil, nil, err
	}
	kept := &agent.Artifact{ID: tenon.ArtifactID(a.Row.ID, a.Step, len(rest)+1), Digest: digest, Bytes: len(whole)}
	out := &tenon.Result{IsError: r.IsError}
	switch b.OnLargeResult {
	case policy.LargeError:
		return tenon.ErrorResult(fmt.Sprintf("the result is too large: %d bytes, at most %d are allowed. It is kept as artifact %s: read it in pieces with %s, or ask the tool for less.",
			len(whole), limit, kept.ID, readerTool)), kept, nil
	case policy.LargeArtifact:
		head := cut(whole, min(previewBytes, limit))
		out.Content = append(out.Content, tenon.Text(fmt.Sprintf("%s\n[these are the first %d of %d bytes, full result: artifact %s; read or search it with %s]", head, len(head), len(whole), kept.ID, readerTool)))
	default:
		note := fmt.Sprintf("\n[truncated, full result: artifact %s]\n", kept.ID)
		room := max(limit-len(note), 0)
		head := cut(whole, room*2/3)
		out.Content = append(out.Content, tenon.Text(head+note+tail(whole, room-len(head))))
	}
	out.Content = append(out.Content, rest...)
	return out, kept, nil
}

// cut returns the first n bytes of a text, or less so that no character is parted.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns the last n bytes of a text, or less.
func tail(s string, n int) string {
	i := max(len(s)-n, 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
