package executor

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
)

// ReaderTool is the tool with which a model reads the rest of a large result.
const ReaderTool = "read_artifact"

// previewBytes is the size of the first part of a large result. The model receives only this part if it can read the
// rest itself.
const previewBytes = 1 << 10

// bounded shortens the text of a result that exceeds the limit of the tool's rules. It stores the whole text as a
// blob of the run and returns an artifact that describes the blob.
func (x *Executor) bounded(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, b policy.Block,
	r *tenon.Result) (*tenon.Result, *agent.Artifact, error) {
	limit := min(int(b.ResultBytes), 4*b.ResultTokens) // four bytes a token
	if c.Client {
		limit = clientLimit(b)
	}
	if a.Row.Core != agent.Version && !c.Client || limit == 0 {
		return r, nil, nil // a person's own call is not shortened
	}
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
	digest, err := "", stored(ctx, a)
	if err == nil {
		digest, err = x.cfg.Store.PutBlob(ctx, a.Row.ID, []byte(whole))
	}
	if tenon.ErrorCode(err) == tenon.CodeStore && ctx.Err() == nil {
		x.cfg.Logger.Error("the rest of a large result is lost, because it cannot be stored", "run", a.Row.ID, "step",
			a.Step, "bytes", len(whole), "error", err)
		return withoutRest(c, b, limit, whole, rest, r.IsError), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	kept := &agent.Artifact{ID: tenon.ArtifactID(a.Row.ID, a.Step, len(rest)+1), Digest: digest, Bytes: len(whole)}
	out := &tenon.Result{IsError: r.IsError}
	if c.Client {
		return forClient(a.Row.ID, kept, b.OnLargeResult, limit, whole, c.Output != "", rest, r.IsError), kept, nil
	}
	switch b.OnLargeResult {
	case policy.LargeError:
		return tenon.ErrorResult(fmt.Sprintf("the result is too large: %d bytes, at most %d are allowed. "+
			"It is kept as artifact %s: read it in pieces with %s, or ask the tool for less.",
			len(whole), limit, kept.ID, ReaderTool)), kept, nil
	case policy.LargeArtifact:
		head := tenon.Truncate(whole, min(previewBytes, limit))
		out.Content = append(out.Content, tenon.Text(fmt.Sprintf("%s\n[these are the first %d of %d bytes, "+
			"full result: artifact %s; read or search it with %s]", head, len(head), len(whole), kept.ID, ReaderTool)))
	default:
		note := fmt.Sprintf("\n[truncated, full result: artifact %s]\n", kept.ID)
		room := max(limit-len(note), 0)
		head := tenon.Truncate(whole, room*2/3)
		out.Content = append(out.Content, tenon.Text(head+note+tenon.TruncateStart(whole, room-len(head))))
	}
	out.Content = append(out.Content, rest...)
	return out, kept, nil
}

// withoutRest shortens a large result whose whole text could not be stored, for instance because the disk is full.
// The call was made, so its result must be in the journal. The engine keeps the journal in memory until the store can
// be written.
func withoutRest(c *agent.ToolCommand, b policy.Block, limit int, whole string, rest []tenon.Content,
	isError bool) *tenon.Result {
	if b.OnLargeResult == policy.LargeError || c.Client && c.Output != "" {
		return tenon.ErrorResult(fmt.Sprintf("the tool was called, but its result is too large: %d bytes, at most %d "+
			"are allowed. It is not kept, because the store cannot be written. Do not call the tool again for the "+
			"same, unless it only reads", len(whole), limit))
	}
	note := fmt.Sprintf("\n[truncated: %d bytes; the rest is lost, because the store cannot be written]\n", len(whole))
	room := max(limit-len(note), 0)
	head := tenon.Truncate(whole, room*2/3)
	text := head + note + tenon.TruncateStart(whole, room-len(head))
	return &tenon.Result{IsError: isError, Content: append([]tenon.Content{tenon.Text(text)}, rest...)}
}
