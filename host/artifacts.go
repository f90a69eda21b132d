package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// The tool with which a model reads a result that was too large to be given whole.
// It is offered once there is one.
const (
	artifactServer = catalog.ArtifactServer
	readerTool     = "read_artifact"
)

// The bounds of what one call of the reader gives.
const (
	readBytes  = 8 << 10  // where the model does not say
	readMost   = 24 << 10 // below what a result may hold by default
	foundMost  = 20
	foundBytes = 200 // around a hit
)

// artifactTools is the toolset of the reader.
type artifactTools struct {
	h     *Host
	tools []tenon.Tool
}

func newArtifactTools(h *Host) artifactTools {
	yes := true
	return artifactTools{h, []tenon.Tool{{Remote: readerTool, Annotations: tenon.Annotations{ReadOnly: &yes, Idempotent: &yes},
		Description: "Reads a piece of a tool result that was too large to be shown whole, or searches in it. The id stands in the shortened result.",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"artifact":{"type":"string","description":"Id of the artifact, such as 3f9a2c-1.0-1"},` +
			`"offset":{"type":"integer","minimum":0,"description":"Byte at which to begin; default 0"},` +
			`"length":{"type":"integer","minimum":1,"description":"Bytes to read; default 8192, at most 24576"},` +
			`"search":{"type":"string","description":"Text to look for instead, upper and lower case alike: gives the places with their offsets, from offset on"}},` +
			`"required":["artifact"],"additionalProperties":false}`)}}}
}

// Tools implements [tenon.Toolset].
func (t artifactTools) Tools(context.Context) ([]tenon.Tool, error) { return t.tools, nil }

// Call implements [tenon.Toolset].
func (t artifactTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	var args struct {
		Artifact, Search string
		Offset, Length   int
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return tenon.ErrorResult("the arguments cannot be read: " + err.Error()), nil
	}
	run, _ := callerOf(c.Key) // the key of a call is run and step
	data, _, err := t.h.artifact(ctx, run, args.Artifact)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return tenon.ErrorResult(err.Error()), nil
	case err != nil:
		return nil, err
	}
	text := string(data)
	if args.Search != "" {
		return &tenon.Result{Content: []tenon.Content{tenon.Text(find(text, args.Search, args.Offset))}}, nil
	}
	if args.Offset >= len(text) {
		return tenon.ErrorResult(fmt.Sprintf("the artifact has %d bytes: there is nothing from byte %d on", len(text), args.Offset)), nil
	}
	if args.Length <= 0 {
		args.Length = readBytes
	}
	rest := tail(text, len(text)-args.Offset) // from the next character on, where the offset is within one
	begin := len(text) - len(rest)
	length := min(max(args.Length, utf8.UTFMax), readMost) // at least a character, or it would never go on
	piece := cut(rest, length)
	if piece == "" { // no text at all
		piece = rest[:min(length, len(rest))]
	}
	end := begin + len(piece)
	note := fmt.Sprintf("[bytes %d to %d of %d]", begin, end, len(text))
	if end < len(text) {
		note = fmt.Sprintf("[bytes %d to %d of %d; go on with offset %d]", begin, end, len(text), end)
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(piece + "\n" + note)}}, nil
}

// find lists the places of a text within another, from a byte on.
func find(text, what string, from int) string {
	lower, want := strings.ToLower(text), strings.ToLower(what)
	if len(lower) != len(text) { // letters whose cases have different sizes: then only as written
		lower, want = text, what
	}
	var b strings.Builder
	n := 0
	for at := min(max(from, 0), len(text)); n < foundMost; n++ {
		i := strings.Index(lower[at:], want)
		if i < 0 {
			break
		}
		at += i
		start := max(at-foundBytes/2, 0)
		fmt.Fprintf(&b, "[byte %d] …%s…\n", at, strings.ToValidUTF8(text[start:min(at+len(want)+foundBytes/2, len(text))], ""))
		at += max(len(want), 1)
		from = at
	}
	switch {
	case n == 0:
		return fmt.Sprintf("[nothing of that text from byte %d on, of %d]", from, len(text))
	case n == foundMost:
		fmt.Fprintf(&b, "[there may be more: search on from offset %d]", from)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// artifact finds what an id names in a run, in those that its conversation goes on
// from, and in those that called it.
func (h *Host) artifact(ctx context.Context, run, id string) (data []byte, mimeType string, err error) {
	for at := run; at != ""; {
		row, err := h.store.Run(ctx, at)
		if err != nil {
			return nil, "", err
		}
		if step, n, ok := tenon.IsArtifactOf(at, id); ok {
			return h.artifactAt(ctx, at, id, step, n)
		}
		if at = row.Parent; at == "" {
			at = row.Caller
		}
	}
	return nil, "", tenon.Errorf(tenon.CodeNotFound, "there is no artifact '%s' in run %s or those before it", id, run)
}

// Artifact returns what is kept under an id that the model or a person was told: a
// result that was too large, or a picture in one. The id may be written without its
// first part. Errors: not_found.
func (h *Host) Artifact(ctx context.Context, run, id string) (data []byte, mimeType string, err error) {
	if strings.Count(id, "-") == 1 {
		id = strings.TrimSuffix(tenon.ArtifactID(run, "", 0), "-0") + id
	}
	return h.artifact(ctx, run, id)
}

func (h *Host) artifactAt(ctx context.Context, run, id, step string, n int) ([]byte, string, error) {
	events, err := h.store.Events(ctx, run, 0, 0)
	if err != nil {
		return nil, "", err
	}
	for _, e := range events {
		var o agent.Outcome
		if e.Kind != agent.EventResult || e.Step != step || json.Unmarshal(e.Data, &o) != nil || o.Result == nil {
			continue
		}
		if o.Whole != nil && o.Whole.ID == id {
			data, err := h.store.Blob(ctx, o.Whole.Digest)
			return data, "text/plain", err
		}
		if n >= len(o.Result.Content) {
			continue
		}
		if c := o.Result.Content[n]; c.Data != "" {
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				return nil, "", tenon.Errorf(tenon.CodeProtocol, "artifact %s: the server sent what is not base64: %w", id, err)
			}
			return data, c.MimeType, nil
		}
	}
	return nil, "", tenon.Errorf(tenon.CodeNotFound, "there is no artifact '%s' in run %s", id, run)
}
