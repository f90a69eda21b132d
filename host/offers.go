package host

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/record"
	"github.com/tenonhq/tenon/servers"
)

// ServerPrompt is a prompt and the server that has it.
type ServerPrompt struct {
	Server string `json:"server"`
	mcp.Prompt
}

// Prompt is a prompt, PromptArgument one of its arguments, and Resource a resource or a template of resources, as
// their server describes them.
type (
	Prompt         = mcp.Prompt
	PromptArgument = mcp.PromptArgument
	Resource       = mcp.Resource
)

// ServerResource is a resource, or a template of resources, and the server that has it.
type ServerResource struct {
	Server string `json:"server"`
	mcp.Resource
}

// ServerOffers are the prompts, resources and completions of one server.
type ServerOffers = record.Offers

// OffersOf returns what a server offers to a client of a surface. A cassette of the host records it, or answers for
// the server. Errors: not_found.
func OffersOf(h *Host, server string) (ServerOffers, error) { return h.offering(server) }

// Prompted is a prompt that a server filled in: a text for the model, and media such as pictures.
type Prompted struct {
	Text  string
	Files []tenon.Part
}

func (h contextHandle) FillPrompt(ctx context.Context, server, name string, args map[string]string) (Prompted, error) {
	s, err := h.host.offering(server)
	if err != nil {
		return Prompted{}, err
	}
	raw, err := s.Prompt(ctx, name, args)
	if err != nil {
		return Prompted{}, err
	}
	return ReadPrompt(server, name, raw)
}

// promptMessage is a message of a prompt that a server filled in.
type promptMessage struct {
	Role    string
	Content json.RawMessage
}

// promptMessages reads the messages of a result of prompts/get. The specification requires an array of objects, each
// with an object as its content.
func promptMessages(raw json.RawMessage) ([]promptMessage, error) {
	var r struct{ Messages []promptMessage }
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r.Messages == nil {
		return nil, errors.New("its member messages is missing or null, not an array")
	}
	for i, m := range r.Messages {
		if !rawjson.IsObject(m.Content) {
			return nil, fmt.Errorf("the content of message %d is not an object", i+1)
		}
	}
	return r.Messages, nil
}

// ReadPrompt reads the result of prompts/get as [ServerContext.FillPrompt] returns it. A prompt with only media has no
// text. Errors: protocol, too_large, invalid (no model accepts the content, or the prompt is empty).
func ReadPrompt(server, name string, raw json.RawMessage) (Prompted, error) {
	messages, err := promptMessages(raw)
	if err != nil {
		return Prompted{}, tenon.Errorf(tenon.CodeProtocol, "prompt '%s' of server '%s' cannot be read: %w",
			tenon.Visible(name), server, err)
	}
	several := slices.ContainsFunc(messages, func(m promptMessage) bool { return m.Role != string(tenon.RoleUser) })
	var out Prompted
	var texts []string
	for _, m := range messages {
		var c tenon.Content
		if err := c.UnmarshalJSON(m.Content); err != nil {
			return Prompted{}, err
		}
		part, err := contentPart(c)
		if err != nil {
			return Prompted{}, tenon.Errorf(tenon.ErrorCode(err), "prompt '%s' of server '%s': %w",
				tenon.Visible(name), server, err)
		}
		if part.Type != tenon.PartText {
			out.Files = append(out.Files, part)
			continue
		}
		if several {
			part.Text = speaker(m.Role) + ": " + part.Text
		}
		texts = append(texts, part.Text)
	}
	if out.Text = strings.Join(texts, "\n\n"); out.Text == "" && len(out.Files) == 0 {
		return out, tenon.Errorf(tenon.CodeInvalid, "prompt '%s' of server '%s' is empty", tenon.Visible(name), server)
	}
	return out, nil
}

// speaker returns the word that precedes a message of a prompt with several roles.
func speaker(role string) string {
	switch role {
	case string(tenon.RoleUser):
		return "User"
	case string(tenon.RoleAssistant):
		return "Assistant"
	}
	return tenon.Visible(role)
}

func (h contextHandle) Attach(ctx context.Context, server, uri string) ([]tenon.Part, error) {
	s, err := h.host.offering(server)
	if err != nil {
		return nil, err
	}
	contents, err := s.Read(ctx, uri)
	if err != nil {
		return nil, err
	}
	return ContentParts(server, uri, contents)
}

// ContentParts makes parts of a question from the content of a resource. Errors: protocol, too_large, invalid (no model
// accepts the content, or it is empty).
func ContentParts(server, uri string, contents []tenon.Content) ([]tenon.Part, error) {
	var parts []tenon.Part
	for _, c := range contents {
		part, err := contentPart(c)
		if err != nil {
			return nil, tenon.Errorf(tenon.ErrorCode(err), "resource '%s' of server '%s': %w", tenon.Visible(uri),
				server, err)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "resource '%s' of server '%s' is empty", tenon.Visible(uri), server)
	}
	return parts, nil
}

// Watch implements [ServerContext].
func (h contextHandle) Watch(ctx context.Context, server, uri string) iter.Seq2[servers.Update, error] {
	s, err := h.host.server(server)
	switch {
	case err != nil:
	case h.host.cassette.playsServers():
		err = tenon.Errorf(tenon.CodeInvalid, "a replay has no servers, so no resource can be watched")
	case uri == "":
		err = tenon.Errorf(tenon.CodeInvalid, "the URI of the resource to watch is missing")
	default:
		return s.Watch(ctx, uri)
	}
	return func(yield func(servers.Update, error) bool) { yield(servers.Update{Server: server, URI: uri}, err) }
}

// offering returns the prompts and resources of a server, through the cassette.
func (h *Host) offering(name string) (record.Offers, error) {
	s, err := h.server(name)
	if err != nil {
		return nil, err
	}
	return h.cassette.offers(name, s), nil
}

// contentPart makes a part of a message from a content block of a server.
func contentPart(c tenon.Content) (tenon.Part, error) {
	kind, _, _ := strings.Cut(c.MimeType, ";")
	if size := len(c.Text) + base64.StdEncoding.DecodedLen(len(c.Data)); size > maxFile+2 { // up to two are padding
		return tenon.Part{}, tenon.Errorf(tenon.CodeTooLarge, "it has %d bytes; %d MiB is the limit", size, maxFile>>20)
	}
	data, err := base64.StdEncoding.DecodeString(c.Data)
	if err != nil {
		return tenon.Part{}, tenon.Errorf(tenon.CodeProtocol, "it is not base64: %w", err)
	}
	media, isMedia := mediaPart(kind, tenon.Visible(c.URI), c.Data)
	switch {
	case c.Data != "" && isMedia:
		return media, nil
	case c.Data != "" && isText(data):
		c.Text = string(data)
	case c.Data != "":
		return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "it holds %s, which no model takes",
			cmp.Or(tenon.Visible(kind), "bytes of an unknown kind"))
	case c.Text == "" && c.URI != "":
		c.Text = "(a link)"
	}
	if len(c.Text) > maxText {
		return tenon.Part{}, tenon.Errorf(tenon.CodeTooLarge, "it is a text of more than %d MiB, which no "+
			"model takes", maxText>>20)
	}
	text := tenon.Visible(c.Text)
	if c.URI != "" {
		text = fmt.Sprintf("Resource %s:\n\n%s", tenon.Visible(c.URI), text)
	}
	return tenon.Part{Type: tenon.PartText, Text: text}, nil
}

// Mention is a resource that a text names as @SERVER:URI.
type Mention struct{ Server, URI string }

func (h contextHandle) Mentions(_ context.Context, text string) ([]Mention, error) {
	all := h.host.connections()
	return MentionsIn(text, func(server string) bool { return all[server] != nil }), nil
}

// MentionsIn finds the resources that a text names as @SERVER:URI, each once. IsServer reports whether a name is the
// name of a server.
func MentionsIn(text string, isServer func(string) bool) []Mention {
	var list []Mention
	for _, word := range strings.Fields(text) {
		name, uri, ok := strings.Cut(strings.TrimLeft(word, "(\"'"), ":")
		name, at := strings.CutPrefix(name, "@")
		uri = strings.TrimRight(uri, ".,;:!?)\"'")
		if !ok || !at || uri == "" || !isServer(name) {
			continue
		}
		if m := (Mention{name, uri}); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// ReadMentions reads the resources that a text names. Errors:
// invalid (too many), errors of [ServerContext.Attach].
func ReadMentions(ctx context.Context, c ServerContext, text string) ([]tenon.Part, error) {
	mentions, err := c.Mentions(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(mentions) > maxFiles {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the question names %d resources; %d is the limit", len(mentions),
			maxFiles)
	}
	var parts []tenon.Part
	for _, m := range mentions {
		p, err := c.Attach(ctx, m.Server, m.URI)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p...)
	}
	return parts, nil
}
