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
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/view"
)

// The bounds of one call of the reader.
const (
	readBytes  = 8 << 10  // if the model names no length
	readMost   = 24 << 10 // less than the default limit of a result
	foundMost  = 20
	foundBytes = 200 // of context around a hit
)

// readerTools is the tool with which a model reads results that were too large for it. It is offered once a result was.
var readerTools = []tenon.Tool{{Remote: executor.ReaderTool, Annotations: harmless,
	Description: "Reads a piece of a tool result that was too large to show whole, or searches in it. The " +
		"shortened result contains the id.",
	Input: json.RawMessage(`{"type":"object","properties":{` +
		`"artifact":{"type":"string","description":"Id of the artifact, such as 3f9a2c-1.0-1"},` +
		`"offset":{"type":"integer","minimum":0,"description":"Byte at which to begin; default 0"},` +
		`"length":{"type":"integer","minimum":1,"description":"Bytes to read; default 8192, at most 24576"},` +
		`"search":{"type":"string","description":"Text to search for instead, from offset on, ` +
		`ignoring case; returns the places with their offsets"}},` +
		`"required":["artifact"],"additionalProperties":false}`)}}

// harmless are the annotations of tools that only read what the run has.
var harmless = tenon.Annotations{ReadOnly: new(true), Idempotent: new(true)}

// artifactTools is the toolset of the reader.
type artifactTools struct{ h *Host }

// Tools implements [tenon.Toolset].
func (artifactTools) Tools(context.Context) ([]tenon.Tool, error) { return readerTools, nil }

// Call implements [tenon.Toolset].
func (t artifactTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	var args struct {
		Artifact, Search string
		Offset, Length   int
	}
	if err := readArguments(c.Arguments, &args); err != nil {
		return tenon.ErrorResult(err.Error()), nil
	}
	run, _ := tenon.ParentRun(c.Key) // the key of a call is run and step
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
		return tenon.ErrorResult(fmt.Sprintf("the artifact has %d bytes: there is nothing from byte %d on", len(text),
			args.Offset)), nil
	}
	if args.Length <= 0 {
		args.Length = readBytes
	}
	// If the offset is inside a character, begin at the next one.
	rest := tenon.TruncateStart(text, len(text)-args.Offset)
	begin := len(text) - len(rest)
	length := min(max(args.Length, utf8.UTFMax), readMost) // at least one character, so that each call makes progress
	piece := tenon.Truncate(rest, length)
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
	if len(lower) != len(text) { // some letters change size with their case: match the exact case
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
		fmt.Fprintf(&b, "[byte %d] …%s…\n", at,
			strings.ToValidUTF8(text[start:min(at+len(want)+foundBytes/2, len(text))], ""))
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

// artifact finds an artifact by its id in a run, in the runs that its conversation continues, and in the runs that
// called it.
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

func (h viewHandle) Artifact(ctx context.Context, id string) (data []byte, mimeType string, err error) {
	if strings.Count(id, "-") == 1 {
		id = strings.TrimSuffix(tenon.ArtifactID(h.id, "", 0), "-0") + id
	}
	return h.host.artifact(ctx, h.id, id)
}

func (h *Host) artifactAt(ctx context.Context, run, id, step string, n int) ([]byte, string, error) {
	events, err := h.store.Events(ctx, run, 0, 0)
	if err != nil {
		return nil, "", err
	}
	for _, e := range events {
		if e.Step != step {
			continue
		}
		if m := view.As[agent.Answered](e).Message; e.Kind == agent.EventModel && m != nil && n < len(m.Parts) &&
			m.Parts[n].Data != "" {
			data, err := base64.StdEncoding.DecodeString(m.Parts[n].Data)
			if err != nil {
				return nil, "", tenon.Errorf(tenon.CodeProtocol, "artifact %s: the model sent what is not "+
					"base64: %w", id, err)
			}
			return data, m.Parts[n].MimeType, nil
		}
		if e.Kind != agent.EventResult {
			continue
		}
		o := view.As[agent.Outcome](e)
		if o.Result == nil {
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
				return nil, "", tenon.Errorf(tenon.CodeProtocol, "artifact %s: the server sent what is not "+
					"base64: %w", id, err)
			}
			return data, c.MimeType, nil
		}
	}
	return nil, "", tenon.Errorf(tenon.CodeNotFound, "there is no artifact '%s' in run %s", id, run)
}
